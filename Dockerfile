# The pipeline, for workers of a Docker or Kubernetes work pool:
#
#   docker build -t pegboard:0.1.0 .
#
# It holds no configuration and no secrets. See docs/how-to/run-elsewhere.md.
FROM python:3.11-slim

WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY catalogs catalogs
COPY tasks tasks
COPY flows flows
COPY index index
RUN pip install --no-cache-dir -c constraints.txt './index[local,litellm,eval,serve]' .

RUN useradd --create-home --uid 1000 pegboard && install --directory --owner pegboard /home/pegboard/project
USER pegboard
WORKDIR /home/pegboard/project

# No entry point: work pools start `prefect flow-run execute` in its place.
CMD ["pegboard", "build"]
