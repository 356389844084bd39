// Package monitoring holds what charts/trireme/monitoring has, rules for Prometheus and
// dashboards for Grafana, against what reads them: promtool checks the rules and simulates
// faults, each of which gives its alert; alerts have their place in the documentation, and
// dashboards are whole. A Prometheus watches a group of real processes with the rules in a
// hurry: every query finds data, a group at work gives no alert, and what can be done to
// processes and disks gives its own.
//
// It needs prometheus and promtool (Debian's package prometheus) and a file system that it may
// mount, as root or in a user namespace: make test-monitoring.
package monitoring
