// Package monitoring holds what charts/trireme/monitoring has, rules for Prometheus and
// dashboards for Grafana, against what reads them: promtool checks the rules and simulates
// faults, each of which gives its alert; alerts have their place in the documentation, and
// dashboards are whole. A Prometheus watches two groups of real processes with the rules in a
// hurry: every query finds data, a group at work gives no alert, and each alert of the rules is
// fired by the fault that it is for, and gone when the fault is. The tables of faults say which,
// and a test that no alert is without one. Beside each fault stands what of it is simulated.
//
// It needs prometheus and promtool (Debian's package prometheus) and a file system that it may
// mount, as root or in a user namespace: make test-monitoring.
package monitoring
