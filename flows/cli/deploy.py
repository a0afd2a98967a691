"""`pegboard deploy`: the deployments and automations of a board on a Prefect server."""

import argparse

from flows.cli.options import add_config_option
from flows.prefect.server import require_server
from pegboard.cli.output import Subparsers, add_command, add_json_option, print_json
from pegboard.errors import ConfigurationError
from pegboard.formatting import plain

DEFAULT_CRON = "0 3 * * *"
WATCH_CRON = "*/10 * * * *"
CRON_EXPECTED = (
    "invalid cron expression. Expected minute, hour, day of the month, month and day of the week, "
    f'in quotes, such as "{DEFAULT_CRON}"; or leave the flow without a schedule: none.'
)
TIMEZONE_EXPECTED = "there is no such time zone. Expected an IANA name such as Europe/Berlin."
EPILOG = """\
Makes reindex/NAME, evaluate/NAME, prune/NAME and watch/NAME on the Prefect server of
PREFECT_API_URL or of Prefect's profile, and automations: a build when an event says that a catalog
changed, the end of lost runs, with --watch the next start of a watch that ended and, with --notify,
alerts. Deploying again changes what is there. Each board has its own names, triggers and alerts, so
several share a server; a name that another board has is refused. If a board has several names, an
event starts the build of the name that was deployed last.

Workers run the flows in the folder of the configuration, and read secrets from their environment.
For a work pool of containers, give the folder in the image, and the image as a variable:
  --pool containers --folder /home/pegboard/project --job-variable image=pegboard-project:0.1.0

examples:
  pegboard deploy                                    nightly, at 03:00 UTC
  pegboard deploy -c prod/pegboard.toml --cron "*/15 * * * *" --notify slack-webhook/ops
  pegboard deploy --watch                            builds what changes, at once
  pegboard deploy --evaluate "0 6 * * 1" --prune "0 4 * * 0" --timezone Europe/Berlin
  prefect worker start --pool pegboard               runs them
  prefect deployment run 'reindex/NAME' --watch      now"""


def register_deploy(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "deploy",
        _deploy,
        EPILOG,
        help="schedule builds of a board on a Prefect server",
        description="Make or change the deployments of a board on a Prefect server.",
    )
    add_config_option(parser, "pegboard.toml")
    add = parser.add_argument
    add("--name", help="of the deployments (default: that of the configuration's folder)")
    add(
        "--pool",
        default="pegboard",
        metavar="POOL",
        help="work pool, made as one of processes if it is missing (default: pegboard)",
    )
    add(
        "--cron",
        default=DEFAULT_CRON,
        metavar="CRON",
        help=f'schedule of builds, or none (default: "{DEFAULT_CRON}")',
    )
    add("--evaluate", metavar="CRON", help="schedule of evaluations (default: by hand)")
    add("--prune", metavar="CRON", help="schedule of prunes (default: by hand)")
    add(
        "--watch",
        nargs="?",
        const=WATCH_CRON,
        metavar="CRON",
        help="watch the sources; CRON says when a watch starts if none runs "
        f'(default: by hand; without CRON "{WATCH_CRON}")',
    )
    add("--timezone", default="UTC", metavar="ZONE", help="of the schedules (default: UTC)")
    add("--notify", metavar="TYPE/NAME", help="notification block for alerts (default: no alerts)")
    add("--folder", metavar="DIR", help="where workers run the flows, if not the configuration's")
    add(
        "--job-variable",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of the work pool; repeatable",
    )
    add_json_option(parser, "what was deployed")


def _deploy(options: argparse.Namespace) -> int:
    from tasks.settings.configuration import load_configuration

    configuration = load_configuration(options.config)
    variables = _job_variables(options.job_variable)
    schedules = _schedules(options)
    require_server()
    from flows.prefect.deployments import DeployOptions, deploy_board

    settings = DeployOptions(
        name=options.name,
        pool=options.pool,
        folder=options.folder,
        schedules=schedules,
        timezone=options.timezone,
        notify=options.notify,
        job_variables=variables,
    )
    deployed = deploy_board(configuration, settings)
    if options.json:
        print_json(deployed.to_dict())
        return 0
    for flow in deployed.deployments:
        cron = settings.schedules.get(flow)
        when = f"{cron} {settings.timezone}" if cron else "by hand"
        print(plain(f"{flow}/{deployed.name}: {when}"))
    for automation in deployed.automations:
        print(plain(f"automation: {automation}"))
    if options.notify is None:
        print("No alerts: give --notify TYPE/NAME of a notification block (`prefect block ls`).")
    print(f"Start a worker:    prefect worker start --pool {options.pool}")
    print(f"Start a build:     prefect deployment run 'reindex/{deployed.name}' --watch")
    event = f"prefect event emit pegboard.catalog.changed --resource-id {deployed.resource}"
    print(f"Report a change:   {event}.catalog.NAME")
    return 0


def _schedules(options: argparse.Namespace) -> dict[str, str]:
    """Return the cron expressions by flow.

    Raises:
        ConfigurationError: an expression or the time zone is invalid.
    """
    schedules: dict[str, str] = {}
    problems: list[str] = []
    options_of_flows = (
        ("reindex", "cron"),
        ("evaluate", "evaluate"),
        ("prune", "prune"),
        ("watch", "watch"),
    )
    for flow, option in options_of_flows:
        cron = getattr(options, option)
        if not cron or cron == "none":
            continue
        schedules[flow] = cron
        invalid = _invalid_fields(cron, options.timezone)
        if "cron" in invalid:
            problems.append(f"--{option} {cron!r}: {CRON_EXPECTED}")
        if "timezone" in invalid:
            problems.append(f"--timezone {options.timezone!r}: {TIMEZONE_EXPECTED}")
    if problems:
        raise ConfigurationError("\n".join(dict.fromkeys(problems)))
    return schedules


def _invalid_fields(cron: str, timezone: str) -> set[int | str]:
    """Return which of `cron` and `timezone` Prefect rejects."""
    from prefect.client.schemas.schedules import CronSchedule
    from pydantic import ValidationError

    try:
        CronSchedule(cron=cron, timezone=timezone)
    except ValidationError as error:
        return {detail["loc"][0] for detail in error.errors()}
    return set()


def _job_variables(texts: list[str]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise ConfigurationError(f"--job-variable {text}: expected NAME=VALUE.")
        variables[name] = value
    return variables
