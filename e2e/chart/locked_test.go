package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// mounted is the Secret that a pod's first container has at a path; empty: none.
func mounted(pod *corev1.PodSpec, path string) string {
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			if m.MountPath == path && v.Name == m.Name && v.Secret != nil {
				return v.Secret.SecretName
			}
		}
	}
	return ""
}

// TestEtcdTLS: etcd is spoken with over TLS by the files of the Secret, which the pods have.
func TestEtcdTLS(t *testing.T) {
	const values = "discovery: {type: etcd, etcd: {endpoints: ['https://etcd:2379'], tls: {existingSecret: registry, clientCertificate: %}}}"
	for certificate, want := range map[string]bool{"true": true, "false": false} {
		r := must(t, strings.Replace(values, "%", certificate, 1))
		s := r.settings(t)
		if !strings.Contains(s, "etcd_tls_ca = /etc/trireme-etcd-tls/ca.crt\n") || strings.Contains(s, "etcd_tls_cert = /etc/trireme-etcd-tls/tls.crt\n") != want ||
			strings.Contains(s, "etcd_tls_key = /etc/trireme-etcd-tls/tls.key\n") != want {
			t.Errorf("clientCertificate %s: %s", certificate, s)
		}
		if got := mounted(&object[*appsv1.StatefulSet](t, r, "StatefulSet/"+set).Spec.Template.Spec, "/etc/trireme-etcd-tls"); got != "registry" {
			t.Errorf("the pods have %q", got)
		}
	}
	if s := must(t, "discovery: {etcd: {tls: {existingSecret: registry}}}").settings(t); strings.Contains(s, "etcd") {
		t.Errorf("without etcd: %s", s)
	}
}

// TestToken: nodes ask for the token, programs in their pods have it, and so has Prometheus.
func TestToken(t *testing.T) {
	r := must(t, "{readReplicas: {count: 1}, monitoring: {token: {existingSecret: scrape, key: bearer}, serviceMonitor: {enabled: true}}}")
	if s := r.settings(t); !strings.Contains(s, "http_token_file = /etc/trireme-http-token/token\n") {
		t.Error(s)
	}
	for _, name := range []string{set, set + "-read"} {
		pod := &object[*appsv1.StatefulSet](t, r, "StatefulSet/"+name).Spec.Template.Spec
		if got := mounted(pod, "/etc/trireme-http-token"); got != "scrape" {
			t.Errorf("%s has %q", name, got)
		}
		has := func(e corev1.EnvVar) bool {
			return e.Name == "TRIREME_HTTP_TOKEN_FILE" && e.Value == "/etc/trireme-http-token/token"
		}
		if !slices.ContainsFunc(pod.Containers[0].Env, has) {
			t.Errorf("trireme status in pods of %s has no token", name)
		}
	}
	if s := must(t, "{}").settings(t); strings.Contains(s, "http_token") || strings.Contains(s, "peer_tls_identity") {
		t.Error(s)
	}
	if s := must(t, "peerTLS: {identity: host}").settings(t); !strings.Contains(s, "peer_tls_identity = host\n") {
		t.Error(s)
	}
}
