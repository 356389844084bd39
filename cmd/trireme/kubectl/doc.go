// Package kubectl is the plugin of kubectl: the program is it where it is called kubectl-trireme,
// so that kubectl finds it in the PATH.
//
//	kubectl trireme status
//	kubectl trireme sql -e 'SELECT 1'
//	kubectl trireme support-bundle
//
// It runs kubectl and nothing else: whoever uses it needs kubectl's configuration and its rights,
// and no port of a member has to be in reach. What a member is asked is asked by the program in the
// member's own container. A plugin is not told the options that precede its name, so that it has
// those of the cluster and the namespace itself.
package kubectl
