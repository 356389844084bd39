package chart

import (
	"fmt"
	"strings"
	"testing"

	common "helm.sh/helm/v4/pkg/chart/common"
)

// named is a StatefulSet of a release as it was installed: its chart, app.kubernetes.io/name and component.
func named(set, release, chart, is, component string) string {
	return fmt.Sprintf("{metadata: {name: %s, annotations: {meta.helm.sh/release-name: %s}, labels: {helm.sh/chart: %s, app.kubernetes.io/name: %s, "+
		"app.kubernetes.io/component: %s}}, spec: {replicas: 3}}", set, release, chart, is, component)
}

const everything = "backup: {enabled: true}, readReplicas: {count: 1}, restore: {from: a/b, existingClaim: c}, networkPolicy: {egress: {enabled: true}}, " +
	"upgrade: {check: {group: always}}, monitoring: {serviceMonitor: {enabled: true}, rules: {enabled: true}, dashboards: {enabled: true}}"

// TestImages: an image may be named by a tag of any length, by a digest, and by both; labels, which are shorter, stay legal.
func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	long := strings.Repeat("v1.2_3-", 18) // 126 characters
	for _, c := range []struct{ values, image, version string }{
		{"image: {}", "triremedb/trireme:0.1.0", "0.1.0"},
		{"image: {tag: 1.2.3}", "triremedb/trireme:1.2.3", "1.2.3"},
		{"image: {tag: 1.2.3, digest: null}", "triremedb/trireme:1.2.3", "1.2.3"}, // values of a release from before
		{"image: {tag: '" + long + "'}", "triremedb/trireme:" + long, long[:62]},
		{"image: {tag: _internal_}", "triremedb/trireme:_internal_", "internal"},
		{"image: {tag: '1.2.3@" + digest + "'}", "triremedb/trireme:1.2.3@" + digest, "1.2.3"},
		{"image: {tag: 1.2.3, digest: '" + digest + "'}", "triremedb/trireme:1.2.3@" + digest, "1.2.3"},
		{"image: {digest: '" + digest + "'}", "triremedb/trireme@" + digest, "0.1.0"},
	} {
		r := must(t, "{"+c.values+", "+everything+", nameOverride: a234567890123456789012345678901234567_-_b, fullnameOverride: prod-db-trireme}")
		for _, p := range r.pods() {
			if got := p.Spec.Containers[0].Image; got != c.image {
				t.Errorf("%s: %s runs %s", c.values, p.Name, got)
			}
		}
		s := r.objects["StatefulSet/"+set].(interface{ GetLabels() map[string]string })
		if got := s.GetLabels()["app.kubernetes.io/version"]; got != c.version {
			t.Errorf("%s: the label is %q, not %q", c.values, got, c.version)
		}
	}
}

// TestNamesStay: an upgrade that would make other objects beside those of the release is refused, and the answer says what to do.
func TestNamesStay(t *testing.T) {
	own := named(set, "prod-db", "trireme-0.0.9", "trireme", "member")
	for _, c := range []struct {
		name   string
		in     seen
		values string
		says   string // empty: it is not refused
	}{
		{"the same names", seen{"StatefulSet/" + set: own}, "{}", ""},
		{"another second part", seen{"StatefulSet/" + set: own}, "nameOverride: other", "are called prod-db-trireme (app.kubernetes.io/name: trireme), and would be called prod-db-other (other)"},
		{"another name", seen{"StatefulSet/" + set: own}, "fullnameOverride: other", "make a new release from a backup"},
		{"an override is taken away", seen{"StatefulSet/given": named("given", "prod-db", "trireme-0.1.0", "trireme", "member")}, "{}", "are called given"},
		{"labels alone, which selectors have", seen{"StatefulSet/" + set: own}, "{fullnameOverride: prod-db-trireme, nameOverride: other}", "a release keeps its names"},
		{"an override stays", seen{"StatefulSet/given": named("given", "prod-db", "trireme-0.1.0", "trireme", "member")}, "fullnameOverride: given", ""},
		{"another release's", seen{"StatefulSet/else": named("else", "else", "trireme-0.1.0", "trireme", "member")}, "{}", ""},
		{"another chart of the release", seen{"StatefulSet/prod-db-2": named("prod-db-2", "prod-db", "trireme-2-0.1.0", "trireme-2", "member")}, "{}", ""},
		{"the read replicas'", seen{"StatefulSet/" + readSet: named(readSet, "prod-db", "trireme-0.1.0", "trireme", "replica")}, "{}", ""},
		{"a set that has no labels", seen{"StatefulSet/bare": "{metadata: {name: bare}}"}, "{}", ""},
	} {
		_, err := renderIn(c.in, common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true, Revision: 2}, c.values)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
		// An installation has no sets of its own, and what is rendered as one each time cannot look.
		if _, err := renderIn(c.in, common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsInstall: true}, c.values); err != nil {
			t.Errorf("%s, an installation: %v", c.name, err)
		}
	}
	// The check asks for a set by the label that sets have.
	if l := must(t, "{}").objects["StatefulSet/"+set]; l == nil {
		t.Fatal("there is no set")
	} else if got := l.(interface{ GetLabels() map[string]string }).GetLabels(); got["helm.sh/chart"] != "trireme-0.1.0" || got["app.kubernetes.io/component"] != "member" || got["app.kubernetes.io/name"] != "trireme" {
		t.Errorf("its labels are %v", got)
	}
}

// TestNamesOfOthers: a release takes over nothing of another one that has its name, whether it is installed or upgraded, and with Secrets of the user's as well.
func TestNamesOfOthers(t *testing.T) {
	const given = "root: {existingSecret: a}, peerTLS: {source: secret, existingSecret: b}"
	of := func(release string) string {
		return "{metadata: {name: x, annotations: {meta.helm.sh/release-name: " + release + "}}, spec: {replicas: 3}}"
	}
	for _, c := range []struct{ key, values, says string }{
		{"StatefulSet/" + set, "{}", "the StatefulSet prod-db-trireme is of the release db"},
		{"StatefulSet/" + readSet, "{readReplicas: {count: 1}}", "the StatefulSet prod-db-trireme-read is of the release db"},
		{"StatefulSet/" + readSet, "{}", ""}, // this one has none
		{"Service/" + set, "{}", "the Service prod-db-trireme is of the release db"},
		{"Service/" + set + "-peers", "{}", "the Service prod-db-trireme-peers is of the release db"},
		{"Service/" + readSet, "{}", "the Service prod-db-trireme-read is of the release db"},
		{"Service/" + readSet, "{readService: {enabled: false}}", ""},
		{"ConfigMap/" + set + "-founders", "{}", "the ConfigMap prod-db-trireme-founders is of the release db"},
		{"Service/other", "{fullnameOverride: other}", "the Service other is of the release db"},
	} {
		values := strings.Replace(c.values, "{", "{"+given+", ", 1)
		for _, as := range []common.ReleaseOptions{{IsInstall: true}, {IsUpgrade: true, Revision: 2}} {
			as.Name, as.Namespace = "prod-db", "prod"
			_, err := renderIn(seen{c.key: of("db")}, as, values)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s, %s, an upgrade %v: %v", c.key, c.values, as.IsUpgrade, err)
			}
			for _, own := range []string{of("prod-db"), "{metadata: {name: x}, spec: {replicas: 3}}"} {
				if _, err := renderIn(seen{c.key: own, "Secret/a": "{data: {root-password: YQ==}}"}, as, values); err != nil {
					t.Errorf("%s, its own: %v", c.key, err)
				}
			}
		}
	}
}

// TestNamesOfOtherKinds: what YAML takes for a number or a truth without quotes is a name all the same.
func TestNamesOfOtherKinds(t *testing.T) {
	for _, name := range []string{"on", "y", "null", "true", "123", "1e3", "0x10", "0o7"} {
		given := strings.ReplaceAll(`{nameOverride: "NAME", fullnameOverride: "NAME", serviceAccount: {name: "NAME"}, root: {existingSecret: "NAME", key: "NAME"}, persistence: {storageClass: "NAME"}, priorityClassName: "NAME",
			peerTLS: {source: secret, existingSecret: "NAME"}, clientTLS: {source: secret, existingSecret: "NAME", clientCA: {existingConfigMap: "NAME", key: "NAME", crlKey: "NAME"}},
			users: [{name: "NAME", user: "NAME", host: "10.%", existingSecret: "NAME", key: "NAME"}], discovery: {type: etcd, etcd: {endpoints: ['http://etcd:2379'], existingSecret: "NAME"}},
			tracing: {endpoint: 'collector:4317', headers: {existingSecret: "NAME", key: "NAME"}, ca: {existingSecret: "NAME", key: "NAME"}}, image: {tag: "NAME"}, clusterName: "NAME",
			backup: {enabled: true, persistence: {existingClaim: "NAME", storageClass: "NAME"}, account: {user: "NAME", existingSecret: "NAME", key: "NAME"}, ca: {existingSecret: "NAME", key: "NAME"}},
			readReplicas: {count: 1}, restore: {from: "NAME", existingClaim: "NAME"}, networkPolicy: {egress: {enabled: true}}, service: {type: LoadBalancer, loadBalancerClass: "NAME"},
			upgrade: {check: {group: always}}, monitoring: {serviceMonitor: {enabled: true}, rules: {enabled: true}, dashboards: {enabled: true, namespace: "NAME"}}}`, "NAME", name)
		r, err := renderIn(nil, common.ReleaseOptions{Name: name, Namespace: name, IsInstall: true}, given)
		if err != nil {
			t.Errorf("%s: %.600v", name, err)
			continue
		}
		for _, p := range r.pods() {
			if p.Labels["app.kubernetes.io/instance"] != name {
				t.Errorf("%s: a pod has the labels %v", name, p.Labels)
			}
		}
		// With names that the chart makes.
		if _, err := renderAs(name, "{peerTLS: {source: certManager}, clientTLS: {source: certManager, issuerRef: {name: ca}}, "+everything+"}"); err != nil {
			t.Errorf("%s: %.600v", name, err)
		}
	}
}
