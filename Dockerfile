# The server as a static binary and the public CA certificates, nothing else: no shell, no
# package manager, no file that is written at run time. Run it with a read-only
# root file system; certificates and configuration are mounted.
#
# `make image` makes the same image without Docker (config/release), and releases
# are made that way. Both must agree: go test ./config/release compares them.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
# The commit, for landwaiter_build_info.
ARG REVISION=""
# aws,azure,gcp make the image whose tag ends in -full, with the clouds' key management
# services and registry logins.
ARG TAGS=""
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -buildvcs=false -trimpath -gcflags=all=-dwarf=false -tags "kustomize_disable_go_plugin_support,grpcnotrace,$TAGS" \
    -ldflags "-s -w -buildid= -X github.com/landwaiter/landwaiter/cmd/internal/program.version=$VERSION -X github.com/landwaiter/landwaiter/cmd/internal/program.revision=$REVISION" -o /out/landwaiter-server ./cmd/landwaiter-server
# Mozilla's list in the version of go.mod, not that of this builder's distribution.
RUN mkdir -p /out/etc/ssl/certs && go run ./config/release certificates > /out/etc/ssl/certs/ca-certificates.crt

FROM scratch
ARG VERSION=dev
LABEL org.opencontainers.image.title=landwaiter \
      org.opencontainers.image.source=https://github.com/landwaiter/landwaiter \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION
COPY --from=build /out/etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/landwaiter-server /landwaiter-server
# Nobody: a number, because a scratch image has no /etc/passwd and Kubernetes'
# runAsNonRoot can only check numbers.
USER 65532:65532
ENTRYPOINT ["/landwaiter-server"]
