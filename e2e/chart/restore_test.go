package chart

import (
	"errors"
	"slices"
	"strings"
	"testing"

	common "helm.sh/helm/v4/pkg/chart/common"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const restoring = "{replicaCount: 1, nodeSelector: {disk: ssd}, persistence: {size: 90Gi, storageClass: fast, accessModes: [ReadWriteOncePod], annotations: {a: b}}, readReplicas: {count: 1}, " +
	"restore: {from: old-trireme/latest, existingClaim: old-trireme-backup, until: 12345678, podLabels: {team: db}, resources: {limits: {memory: 8Gi}}}}"

// restoreOf is what the job before an installation makes.
func restoreOf(t *testing.T, r *release) (*corev1.PersistentVolumeClaim, *batchv1.Job) {
	t.Helper()
	a := object[*batchv1.Job](t, r, "Job/prod-db-trireme-restore").Spec.Template.Annotations
	claim, job := &corev1.PersistentVolumeClaim{}, &batchv1.Job{}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(a["trireme.io/claim"]), claim), yaml.UnmarshalStrict([]byte(a["trireme.io/job"]), job)); err != nil {
		t.Fatal(err)
	}
	return claim, job
}

// What is restored into is the claim that the first pod will have, and the address is the pod's.
func TestRestoreIsForTheFirstPod(t *testing.T) {
	r := must(t, restoring)
	claim, job := restoreOf(t, r)
	set := object[*appsv1.StatefulSet](t, r, "StatefulSet/prod-db-trireme")
	made := set.Spec.VolumeClaimTemplates[0]
	if claim.Name != made.Name+"-"+set.Name+"-0" || !labels.Equals(claim.Labels, made.Labels) || !labels.Equals(claim.Annotations, made.Annotations) {
		t.Errorf("%+v is no claim of %+v", claim, made)
	}
	is, want := must2(t, yaml.Marshal, claim.Spec), must2(t, yaml.Marshal, made.Spec)
	if is != want {
		t.Errorf("the claim is\n%s\nand the set's\n%s", is, want)
	}
	pod := &corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}
	pod.Name = job.Name
	checkRestricted(t, pod)
	r.checkVolumesOf(t, pod, claim.Name)
	c, member := pod.Spec.Containers[0], set.Spec.Template.Spec
	if got, want := settingsOf(t, &job.Spec.Template), settingsOf(t, &set.Spec.Template); got != want {
		t.Errorf("it restores for the settings\n%s\nand nodes start with\n%s", got, want)
	}
	for _, want := range []string{"--if-empty", "--from=/backups/old-trireme/latest", "--until=12345678"} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("no %s: %q", want, c.Args)
		}
	}
	if !slices.Contains(c.Env, corev1.EnvVar{Name: "TRIREME_PEER_ADDRESS", Value: "prod-db-trireme-0.prod-db-trireme-peers.prod.svc.cluster.local:17100"}) {
		t.Errorf("%v", c.Env)
	}
	mount := func(c *corev1.Container, name string) corev1.VolumeMount {
		return c.VolumeMounts[slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })]
	}
	if mount(&c, "data") != mount(&member.Containers[0], "data") || !mount(&c, "backups").ReadOnly {
		t.Errorf("%+v", c.VolumeMounts)
	}
	if *pod.Spec.AutomountServiceAccountToken || pod.Spec.NodeSelector["disk"] != "ssd" || c.Resources.Limits.Memory().String() != "8Gi" || pod.Labels["team"] != "db" {
		t.Errorf("%+v", pod)
	}
	if labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
		t.Error("it is one of the set")
	}
}

func must2(t *testing.T, fn func(any) ([]byte, error), v any) string {
	t.Helper()
	b, err := fn(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkVolumesOf is checkVolumes for a pod that uses a claim which no object of the release is.
func (r *release) checkVolumesOf(t *testing.T, p *corev1.Pod, made string) {
	t.Helper()
	r.objects["PersistentVolumeClaim/"+made] = &corev1.PersistentVolumeClaim{}
	defer delete(r.objects, "PersistentVolumeClaim/"+made)
	r.checkVolumes(t, p)
}

// A pod that is stopped from outside does not end a restore: another one begins when it is gone. What the program says no to is final.
func TestRestoreOfPodsThatAreStopped(t *testing.T) {
	r := must(t, restoring)
	_, data := restoreOf(t, r)
	for _, job := range []*batchv1.Job{data, object[*batchv1.Job](t, r, "Job/prod-db-trireme-restore")} {
		s := job.Spec
		if *s.BackoffLimit != 3 || *s.PodReplacementPolicy != batchv1.Failed || s.Template.Spec.RestartPolicy != corev1.RestartPolicyNever || s.ActiveDeadlineSeconds == nil || len(s.PodFailurePolicy.Rules) != 2 {
			t.Fatalf("%s: %+v", job.Name, s)
		}
		if rule := s.PodFailurePolicy.Rules[0]; rule.Action != batchv1.PodFailurePolicyActionIgnore || rule.OnPodConditions[0].Type != corev1.DisruptionTarget || rule.OnPodConditions[0].Status != corev1.ConditionTrue {
			t.Errorf("%s: %+v", job.Name, rule)
		}
		if rule := s.PodFailurePolicy.Rules[1]; rule.Action != batchv1.PodFailurePolicyActionFailJob || !slices.Equal(rule.OnExitCodes.Values, []int32{1, 2}) {
			t.Errorf("%s: %+v", job.Name, rule)
		}
	}
}

// Before an installation, and never later, there is a job with an account that names the claims and sets of the release.
func TestRestoreRights(t *testing.T) {
	r := must(t, restoring)
	for _, key := range []string{"ServiceAccount/prod-db-trireme.restore", "Role/prod-db-trireme.restore", "RoleBinding/prod-db-trireme.restore", "Job/prod-db-trireme-restore"} {
		var a map[string]string
		switch o := r.objects[key].(type) {
		case *corev1.ServiceAccount:
			a = o.Annotations
		case *rbacv1.Role:
			a = o.Annotations
		case *rbacv1.RoleBinding:
			a = o.Annotations
			if o.RoleRef.Name != "prod-db-trireme.restore" || o.Subjects[0].Name != "prod-db-trireme.restore" {
				t.Errorf("%+v", o)
			}
		case *batchv1.Job:
			a = o.Annotations
			if spec := o.Spec.Template.Spec; spec.ServiceAccountName != "prod-db-trireme.restore" || !*spec.AutomountServiceAccountToken {
				t.Errorf("%+v", spec)
			}
		}
		if a["helm.sh/hook"] != "pre-install" || a["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s: %v", key, a)
		}
	}
	may := map[string][]string{}
	for _, rule := range object[*rbacv1.Role](t, r, "Role/prod-db-trireme.restore").Rules {
		for _, verb := range rule.Verbs {
			for _, what := range rule.Resources {
				may[verb+" "+what] = rule.ResourceNames
			}
		}
	}
	claim, job := restoreOf(t, r)
	for what, names := range map[string][]string{"get statefulsets": {"prod-db-trireme", "prod-db-trireme-read"}, "patch persistentvolumeclaims": {claim.Name}, "get jobs": {job.Name},
		"delete jobs": {job.Name}, "create persistentvolumeclaims": nil, "create jobs": nil, "list pods": nil, "list events": nil} {
		if got, ok := may[what]; !ok || !slices.Equal(got, names) {
			t.Errorf("it may %s of %v (%v)", what, got, ok)
		}
		delete(may, what)
	}
	if all := may["get persistentvolumeclaims"]; len(all) != 198 || all[0] != claim.Name || !slices.Contains(all, "data-prod-db-trireme-read-98") || len(may) != 1 {
		t.Errorf("it may besides %v", may)
	}
	limited := must(t, strings.Replace(restoring, "{replicaCount: 1,", "{replicaCount: 1, networkPolicy: {egress: {enabled: true}},", 1))
	if !limited.reaches(&object[*batchv1.Job](t, limited, "Job/prod-db-trireme-restore").Spec.Template, map[string]string{"app": "other"}, "6443") {
		t.Error("it does not reach Kubernetes where egress is limited")
	}
	for key := range must(t, "{}").objects {
		if strings.Contains(key, "restore") {
			t.Errorf("without restore.from there is %s", key)
		}
	}
	if _, err := renderIn(nil, common.ReleaseOptions{Name: "prod-db", Namespace: "prod", IsUpgrade: true, Revision: 2}, "restore: null"); err != nil {
		t.Error(err) // values of a release from before
	}
	for _, bad := range []string{"{from: a}", "{from: /a, existingClaim: b}", "{from: ../a, existingClaim: b}", "{from: a/../../b, existingClaim: b}", "{from: a, existingClaim: b, until: yesterday}"} {
		if _, err := render("restore: " + bad); err == nil {
			t.Errorf("restore: %s is taken", bad)
		}
	}
}

// An installation that has failed is an upgrade when it is tried again: the restore is then made up for, while there is no set. Pods found nothing before.
func TestRestoreOfFailedInstallation(t *testing.T) {
	for name, c := range map[string]struct {
		r    *release
		want string
	}{
		"an installation":         {must(t, restoring), "pre-install"},
		"one that has failed":     {upgraded(t, seen{}, restoring), "pre-install,pre-upgrade"},
		"a group that is there":   {upgraded(t, running(1), restoring), "pre-install"},
		"a group that hibernates": {upgraded(t, running(0), restoring), "pre-install"},
	} {
		for _, key := range []string{"ServiceAccount/prod-db-trireme.restore", "Role/prod-db-trireme.restore", "RoleBinding/prod-db-trireme.restore", "Job/prod-db-trireme-restore"} {
			if got := c.r.objects[key].(metav1.Object).GetAnnotations()["helm.sh/hook"]; got != c.want {
				t.Errorf("%s: %s is a hook %s", name, key, got)
			}
		}
		if got := object[*corev1.ConfigMap](t, c.r, "ConfigMap/prod-db-trireme-founders").Data["restore"]; got != "old-trireme/latest" {
			t.Errorf("%s: pods wait for the restore of %q", name, got)
		}
	}
	r := must(t, "{}")
	if data := object[*corev1.ConfigMap](t, r, "ConfigMap/prod-db-trireme-founders").Data; len(data) != 1 {
		t.Errorf("without a restore pods wait for one: %v", data)
	}
	env := object[*appsv1.StatefulSet](t, r, "StatefulSet/"+set).Spec.Template.Spec.Containers[0].Env
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "TRIREME_KUBERNETES_RESTORE" })
	if i < 0 {
		t.Fatal("pods do not hear of a restore")
	}
	if ref := env[i].ValueFrom.ConfigMapKeyRef; ref.Name != "prod-db-trireme-founders" || ref.Key != "restore" || !*ref.Optional {
		t.Errorf("%+v", ref)
	}
}

// Under a quota the container that makes the claim has to say what it needs, which may be another amount; values of a release from before say nothing of it.
func TestRestoreClaimResources(t *testing.T) {
	for more, want := range map[string]string{"": "128Mi", "claimResources: {limits: {memory: 1Gi, cpu: 1}, requests: {cpu: 1}},": "1Gi", "claimResources: null,": "128Mi"} {
		r := must(t, strings.Replace(restoring, "restore: {", "restore: {"+more, 1))
		c := object[*batchv1.Job](t, r, "Job/prod-db-trireme-restore").Spec.Template.Spec.Containers[0]
		if got := c.Resources.Limits.Memory().String(); got != want {
			t.Errorf("%q: %s", more, got)
		}
	}
}
