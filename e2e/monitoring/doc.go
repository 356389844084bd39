// Package monitoring holds what charts/trireme/monitoring has, rules for Prometheus and
// dashboards for Grafana, against what reads them: promtool checks the rules and simulates
// faults, each of which gives its alert; alerts have their place in the documentation, and
// dashboards are whole and ask for metrics that there are.
//
// It needs promtool (Debian's package prometheus): make test-monitoring.
package monitoring
