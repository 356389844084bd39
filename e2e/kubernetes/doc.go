// Package kubernetes runs the Helm chart on a Kubernetes: a real one, of this machine, whose
// nodes are namespaces of the kernel. While programs transfer money through the chart's
// Service the group is upgraded, loses pods, processes, nodes and volumes, and grows and
// shrinks; after each of these nothing acknowledged may be missing, and all members have to
// hold the same.
//
// `make e2e-kubernetes` builds what it takes (tools/kubernetes) and runs it; it needs Linux,
// root, and Debian's containerd, runc, containernetworking-plugins and iptables. Everything
// runs in namespaces of its own and writes to one directory: nothing is left.
package kubernetes
