# For those who build images with Docker; "make images" needs none.
#
#   docker build --build-arg PROGRAM=manager -t registry.example.com/espalier/manager:v0 .
#   docker build --build-arg PROGRAM=server  -t registry.example.com/espalier/server:v0  .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG PROGRAM=manager
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY internal internal
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X github.com/espalier-dev/espalier/internal/version.Version=$VERSION" \
    -o /out/program "./cmd/$PROGRAM" && ln -s program "/out/$PROGRAM"

FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/ /
USER 65532:65532
ENTRYPOINT ["/program"]
