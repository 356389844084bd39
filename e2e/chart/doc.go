// Package chart holds charts/trireme against Kubernetes without a cluster: what it renders
// for many values is decoded strictly as Kubernetes' own types and the Prometheus operator's,
// is accepted by the code with which Kubernetes' API checks objects, passes the restricted
// level of pod security, fits together, and gives nodes settings that the server takes. Values
// that cannot give such manifests are refused by the chart.
//
// It is a module of its own: Helm's and Kubernetes' libraries are many.
package chart
