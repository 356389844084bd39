// Package tracing decides which requests of this node are traced, and sends their spans to a
// collector by OTLP over gRPC.
//
//	r, err := tracing.Open(tracing.Options{Endpoint: "collector:4317", Ratio: 0.01, PerSecond: 100, Queue: 2048})
//	r.Start(tracing.Node{Group: group, Member: id, Version: version})
//	defer r.Close()
//
// Certificates, headers and the time that a call may take are those of the OTEL_EXPORTER_OTLP_*
// variables of the environment (https://opentelemetry.io/docs/specs/otel/protocol/exporter/), the
// service's name and more that the collector is to know of the node those of OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES.
//
// # Invariants
//
//   - Nobody waits for the collector: spans lie in a queue of a fixed length, and one that finds it
//     full is dropped and counted.
//   - No more traces are begun in a second than Options.PerSecond, whoever asks for them; after a
//     quiet time as many may begin at once. No account has more than half of them while others
//     want some, but where two share a place among 64.
//   - Close takes about two seconds at most, whatever the collector does.
package tracing
