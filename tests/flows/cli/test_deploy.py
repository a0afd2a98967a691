"""`pegboard deploy` with options that no server is asked about."""


def test_invalid_schedules_are_all_named_before_a_server_is_needed(command, workshop):
    workshop.configure()
    options = ("--cron", "* * * *", "--prune", "daily", "--timezone", "Mars/Olympus")

    code, out, err = command("deploy", *options)

    assert (code, out) == (2, "")
    assert "--cron '* * * *': invalid cron expression. Expected minute, hour, day" in err
    assert "--prune 'daily': invalid cron expression." in err
    assert err.count("--timezone 'Mars/Olympus': there is no such time zone.") == 1
    assert "--evaluate" not in err


def test_valid_schedules_and_none_are_accepted(command, workshop, tmp_path):
    (tmp_path / "home").mkdir()  # Prefect makes its own folder in it, and no parents
    workshop.configure()
    options = ("--cron", "none", "--evaluate", "0 6 * * 1", "--timezone", "Europe/Berlin")

    code, _, err = command("deploy", *options)

    assert code == 1
    assert "No Prefect server is named" in err
