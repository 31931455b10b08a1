# The gateway in an image without shell or package manager. At run time: no root, no writable root, nothing downloaded.
#
#   docker build -t oap-memory .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#       -v oap-memory:/var/lib/oap-memory -v /etc/oap-memory:/etc/oap-memory:ro -p 443:8443 oap-memory
#
# docs/operate.md has the rest.

FROM rust:1.95-slim-bookworm AS build
# aws-lc and jemalloc build C. The versions are those of the release that the base image names.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends cmake g++ make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked --package oap-gateway \
    && install -D target/dist/oap-memory /image/oap-memory \
    && mkdir /image/home

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /image/oap-memory /usr/local/bin/oap-memory
# What the documents on the wire look like, for whoever implements them.
COPY schemas docs/openapi.json /usr/local/share/oap-memory/schemas/
COPY --from=build --chown=65532:65532 --chmod=700 /image/home /var/lib/oap-memory
ENV OAP_MEMORY_HOME=/var/lib/oap-memory \
    OAP_MEMORY_LISTEN=0.0.0.0:8443
VOLUME /var/lib/oap-memory
EXPOSE 8443
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/oap-memory"]
CMD ["serve"]
