# The pipeline, for workers of a Docker or Kubernetes work pool:
#
#   docker build -t pegboard:0.1.0 .
#
# It holds no configuration and no secrets. See docs/how-to/run-elsewhere.md. A tag may come to name
# another image; to build from one and no other, give its digest, which
# `docker buildx imagetools inspect python:3.11-slim` prints:
# --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:DIGEST
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

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
