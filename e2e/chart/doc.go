// Package chart holds charts/trireme against Kubernetes without a cluster: what it renders
// for many values is decoded strictly as Kubernetes' own types and the Prometheus operator's,
// passes the restricted level of pod security, fits together, and gives nodes settings that
// the server takes.
//
// It is a module of its own: Helm's and Kubernetes' libraries are many.
package chart
