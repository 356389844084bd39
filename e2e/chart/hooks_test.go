package chart

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHooksHaveNamesOfTheirOwn: Helm deletes what has the name of a hook's object, whoever's it is. No release can have a full
// name of which an object has that name.
func TestHooksHaveNamesOfTheirOwn(t *testing.T) {
	const all = "{backup: {enabled: true}, networkPolicy: {enabled: true, egress: {enabled: true}}, readReplicas: {count: 1}, " +
		"restore: {from: a/b, existingClaim: c}, upgrade: {check: {group: always}}}"
	hooks, suffixes := map[string]bool{}, map[string]bool{}
	for key, o := range must(t, all).objects {
		kind, name, _ := strings.Cut(key, "/")
		suffix := strings.TrimPrefix(name, "prod-db-trireme")
		suffixes[kind+"/"+suffix] = true
		if o.(metav1.Object).GetAnnotations()["helm.sh/hook"] != "" {
			hooks[kind+"/"+suffix] = true
		}
	}
	for hook := range hooks {
		kind, suffix, _ := strings.Cut(hook, "/")
		for other := range suffixes {
			// The other release's full name is this one's and more.
			if k, s, _ := strings.Cut(other, "/"); k == kind && s != suffix && strings.HasSuffix(suffix, s) {
				if more := strings.TrimSuffix(suffix, s); !strings.Contains(more, ".") {
					t.Errorf("the hook's %s of a release x deletes that of a release x%s", hook, more)
				}
			}
		}
	}
	for _, as := range []struct{ name, values string }{{"a.prepare", "{}"}, {"prod-db", "fullnameOverride: a.prepare"}} {
		if _, err := renderAs(as.name, as.values); err == nil || !strings.Contains(err.Error(), "has a dot") {
			t.Errorf("%v: %v", as, err)
		}
	}
}
