package chart

import (
	"fmt"
	"strings"
	"testing"

	common "helm.sh/helm/v4/pkg/chart/common"
	corev1 "k8s.io/api/core/v1"
)

// madeOnce are the Secrets that the release makes, each with a key that it has.
var madeOnce = map[string]string{"prod-db-trireme-root": "root-password", "prod-db-trireme-peer-tls": "tls.crt", "prod-db-trireme-backup": "password"}

// holding is a cluster that has these Secrets, with annotations.
func holding(annotations string) seen {
	s := seen{}
	for name, key := range madeOnce {
		s["Secret/"+name] = fmt.Sprintf("{metadata: {name: %s, annotations: {%s}}, data: {%s: a2VwdA==, tls.key: a2VwdA==}}", name, annotations, key)
	}
	return s
}

const (
	keptNote = "helm.sh/resource-policy: keep"
	ownNote  = "meta.helm.sh/release-name: prod-db"
)

// TestSecretsAreMadeOnce: a Secret whose data may change later is made by a hook before an installation or an upgrade that
// finds none, and is no part of what an upgrade or a rollback applies: Helm would take a password of before for the right one.
func TestSecretsAreMadeOnce(t *testing.T) {
	const values = "backup: {enabled: true}"
	for _, c := range []struct {
		name   string
		r      *release
		weight string // the check of an upgrade comes after them: it asks whether all pods are there
	}{
		{"an installation", must(t, values), "5"},
		{"they were deleted", upgraded(t, seen{}, values), "-2"},
	} {
		for name, key := range madeOnce {
			s := object[*corev1.Secret](t, c.r, "Secret/"+name)
			if len(s.Data[key]) == 0 {
				t.Errorf("%s: %s has no %s", c.name, name, key)
			}
			a := s.Annotations
			// Without a policy Helm deletes what is there before it makes another one.
			if a["helm.sh/hook"] != "pre-install,pre-upgrade" || a["helm.sh/hook-delete-policy"] != "hook-failed" || a["helm.sh/resource-policy"] != "keep" ||
				a["helm.sh/hook-weight"] != c.weight || a["meta.helm.sh/release-name"] != "prod-db" || a["meta.helm.sh/release-namespace"] != "prod" {
				t.Errorf("%s: %s: %v", c.name, name, a)
			}
		}
	}
	for _, notes := range []string{keptNote, keptNote + ", " + ownNote, "a: b"} {
		again, err := renderIn(holding(notes), common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsInstall: true}, values)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*release{"an upgrade": upgraded(t, holding(notes), values), "another installation": again} {
			for key := range r.objects {
				if strings.HasPrefix(key, "Secret/") {
					t.Errorf("%s has %s, which is there with %s", name, key, notes)
				}
			}
		}
	}
}

// TestSecretsOfChartsBefore: what a chart of before made without saying that it is kept would be deleted by an upgrade to one
// that does not have it. So it is there once more, as it is.
func TestSecretsOfChartsBefore(t *testing.T) {
	r := upgraded(t, holding(ownNote), "backup: {enabled: true}")
	for name, key := range madeOnce {
		s := object[*corev1.Secret](t, r, "Secret/"+name)
		if string(s.Data[key]) != "kept" || s.Annotations["helm.sh/resource-policy"] != "keep" || s.Annotations["helm.sh/hook"] != "" {
			t.Errorf("%s: %q, %v", name, s.Data, s.Annotations)
		}
	}
}

// TestSecretsThatDoNotFit: a Secret that has no such key, or is another release's, is not taken.
func TestSecretsThatDoNotFit(t *testing.T) {
	for values, c := range map[string]struct {
		in   seen
		says string
	}{
		"root: {key: other}":            {holding(keptNote), "prod-db-trireme-root is there and has no key other"},
		"backup: {enabled: true}":       {holding("meta.helm.sh/release-name: else"), "is of the release else"},
		"peerTLS: {source: none}":       {holding("meta.helm.sh/release-name: else"), "prod-db-trireme-root is of the release else"},
		"root: {existingSecret: other}": {holding("cert-manager.io/certificate-name: prod-db-trireme-peers"), "which nobody would renew any more: keep peerTLS.source=certManager"},
		"root: {existingSecret: given}": {seen{"Secret/prod-db-trireme-peer-tls": "{metadata: {name: prod-db-trireme-peer-tls}}"}, "has no key tls.crt"},
	} {
		as := common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true, Revision: 2}
		if _, err := renderIn(c.in, as, values); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
