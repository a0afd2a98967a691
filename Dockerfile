# The pipeline with the extra `dask`, for workers of a Docker or Kubernetes work pool and for Dask's own workers:
#
#   docker build -t pegboard:0.1.0 .
#
# It holds no configuration and no secrets. See docs/how-to/run-elsewhere.md.
FROM python:3.11-slim

# With fastembed's encoders: "dask,fastembed".
ARG EXTRAS=dask

WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY catalogs catalogs
COPY tasks tasks
COPY flows flows
COPY index index
RUN pip install --no-cache-dir -c constraints.txt './index[local,litellm,eval,serve]' ".[${EXTRAS}]"

RUN useradd --create-home --uid 1000 pegboard && install --directory --owner pegboard /home/pegboard/project
USER pegboard
WORKDIR /home/pegboard/project

# No entry point: work pools start `prefect flow-run execute` in its place.
CMD ["pegboard", "build"]
