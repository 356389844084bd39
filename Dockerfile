# The server and its tools: one static binary on an empty base. The user is none of the
# image's, and nothing but the volume of the data and /tmp is written to.
#
#   docker build -t trireme .
#   docker run -v trireme:/var/lib/trireme -p 3306:3306 trireme
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/trireme ./cmd/trireme && mkdir -m 1777 /out/tmp && mkdir -p /out/var/lib/trireme && chown 65532:65532 /out/var/lib/trireme

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
ENV TRIREME_DATADIR=/var/lib/trireme/data TRIREME_LOG_FORMAT=json
VOLUME /var/lib/trireme
EXPOSE 3306 3406 17000 17100 18080
ENTRYPOINT ["/trireme"]
CMD ["server"]
