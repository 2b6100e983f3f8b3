# A static binary and the public CA certificates, nothing else: no shell, no
# package manager, no file that is written at run time. Run it with a read-only
# root file system; certificates and configuration are mounted.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
# aws,azure,gcp make the image landwaiter:full, with the clouds' key management
# services and registry logins.
ARG TAGS=""
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -buildvcs=false -tags "$TAGS" \
    -ldflags "-s -w -X main.version=$VERSION" -o /out/landwaiter ./cmd/landwaiter

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/landwaiter /landwaiter
# Nobody: a number, because a scratch image has no /etc/passwd and Kubernetes'
# runAsNonRoot can only check numbers.
USER 65532:65532
ENTRYPOINT ["/landwaiter"]
