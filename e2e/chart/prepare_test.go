package chart

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
)

// standing is a cluster in which a release has StatefulSets as they are given: "name size pods who", who is the one that
// has set their number.
func standing(sets ...string) seen {
	s := seen{}
	for _, set := range sets {
		var name, size, who, sub string
		var pods int
		_, _ = fmt.Sscan(set, &name, &size, &pods, &who, &sub)
		manager := "{manager: " + who + ", operation: Update, fieldsV1: {'f:spec': {'f:replicas': {}}}"
		if sub != "" {
			manager += ", subresource: " + sub
		}
		s["StatefulSet/"+name] = fmt.Sprintf("{metadata: {name: %s, managedFields: [{manager: x, operation: Update}, %s}]}, spec: {replicas: %d, "+
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}}]}}", name, manager, pods, size)
	}
	return s
}

const set, readSet = "prod-db-trireme", "prod-db-trireme-read"

// TestPrepareJob: when there is a job before an upgrade, and what it is told.
func TestPrepareJob(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     seen
		values string
		args   string // empty: there is no job before an upgrade
	}{
		{"nothing changes", standing(set + " 20Gi 3 helm"), "{}", ""},
		{"more members", standing(set + " 20Gi 3 helm"), "replicaCount: 5", ""},
		{"volumes grow", standing(set + " 20Gi 3 helm"), "persistence: {size: 40Gi}", "--size=40Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3"},
		{"volumes shrink", standing(set + " 20Gi 3 helm"), "persistence: {size: 10Gi}", "--size=10Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3"},
		{"new ones are smaller", standing(set + " 20Gi 3 helm"), "{persistence: {size: 10Gi}, upgrade: {prepare: {keepClaims: true}}}", "--size=10Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 --keep-claims prod-db-trireme=3"},
		{"another storage class", standing(set + " 20Gi 3 helm"), "persistence: {storageClass: fast}", "--size=20Gi --storage-class=fast --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3"},
		{"other access modes", standing(set + " 20Gi 3 helm"), "persistence: {accessModes: [ReadWriteOncePod]}", "--size=20Gi --access-modes=ReadWriteOncePod --claim-annotations={} --claims=99 prod-db-trireme=3"},
		{"other annotations", standing(set + " 20Gi 3 helm"), "persistence: {annotations: {b: 'x: \"y\"', a: z}}",
			`--size=20Gi --access-modes=ReadWriteOnce --claim-annotations={"a":"z","b":"x: \"y\""} --claims=99 prod-db-trireme=3`},
		{"a size in bytes", standing(set + " 20Gi 3 helm"), "persistence: {size: 21474836480}", "--size=2.147483648e+10 --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3"},
		{"replicas' volumes grow", standing(set+" 40Gi 3 helm", readSet+" 20Gi 2 helm"), "{persistence: {size: 40Gi}, readReplicas: {count: 40}}",
			"--size=40Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3 prod-db-trireme-read=40"},
		{"replicas come", standing(set + " 20Gi 3 helm"), "readReplicas: {count: 1}", ""},
		{"replicas go", standing(set+" 20Gi 3 helm", readSet+" 10Gi 2 helm"), "{}", ""},
		{"scaled by kubectl", standing(set + " 20Gi 0 kubectl scale"), "{}", "--size=20Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3"},
		{"scaled by kubectl, and so it is to be", standing(set + " 20Gi 3 kubectl scale"), "{}", ""},
		{"edited", standing(set + " 20Gi 5 kubectl-edit"), "{}", "--size=20Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3"},
		{"replicas were scaled by an autoscaler", standing(set+" 20Gi 3 helm", readSet+" 20Gi 7 kube-controller-manager scale"), "readReplicas: {count: 2}",
			"--size=20Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3 prod-db-trireme-read=2"},
		{"it is to sleep", standing(set + " 20Gi 3 helm"), "hibernate: true", ""},
		{"it sleeps already", standing(set + " 20Gi 0 kubectl scale"), "{hibernate: true, persistence: {size: 40Gi}}", "--size=40Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=0"},
		{"the set is gone", seen{}, "{}", "--size=20Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3"},
		{"no cluster to look at", nil, "{}", "--size=20Gi --access-modes=ReadWriteOnce --claim-annotations={} --claims=99 prod-db-trireme=3"},
	} {
		r := upgraded(t, c.in, c.values)
		args := func(name string) string {
			job, ok := r.objects["Job/prod-db-trireme-"+name].(*batchv1.Job)
			if !ok {
				return ""
			}
			return strings.Join(withoutTemplates(t, r, job), " ")
		}
		want := c.args
		if want != "" {
			want = "prepare " + want
		}
		if got := args("prepare"); got != want {
			t.Errorf("%s: before an upgrade: %q, not %q", c.name, got, want)
		}
		back := args("prepare-rollback")
		if !strings.Contains(back, " --rollback ") || strings.Contains(back, "--keep-claims") || want != "" && strings.ReplaceAll(want, " --keep-claims", "") != strings.ReplaceAll(back, " --rollback", "") {
			t.Errorf("%s: before a rollback: %q", c.name, back)
		}
	}
	for _, values := range []string{"upgrade: {prepare: {enabled: false}}", "upgrade: {prepare: null}", "upgrade: null"} {
		for key := range upgraded(t, standing(set+" 10Gi 3 helm"), values).objects {
			if strings.Contains(key, "prepare") {
				t.Errorf("%s: there is %s", values, key)
			}
		}
	}
}

// withoutTemplates are a job's arguments without the templates of pods, which have to be those of the sets that Helm makes.
func withoutTemplates(t *testing.T, r *release, job *batchv1.Job) (others []string) {
	t.Helper()
	told := map[string]bool{}
	for _, arg := range job.Spec.Template.Spec.Containers[0].Args {
		text, ok := strings.CutPrefix(arg, "--template=")
		if !ok {
			others = append(others, arg)
			continue
		}
		name, text, _ := strings.Cut(text, "=")
		var pods corev1.PodTemplateSpec
		d := json.NewDecoder(strings.NewReader(strings.ReplaceAll(text, "$$(", "$(")))
		d.DisallowUnknownFields()
		if err := d.Decode(&pods); err != nil {
			t.Errorf("%s: %v: %s", name, err, text)
		}
		if want := object[*appsv1.StatefulSet](t, r, "StatefulSet/"+name).Spec.Template; !equality.Semantic.DeepEqual(pods, want) {
			t.Errorf("%s: the pods of\n%+v\nare not those of\n%+v", name, pods, want)
		}
		told[name] = true
	}
	for key := range r.objects {
		if name, ok := strings.CutPrefix(key, "StatefulSet/"); ok && !told[name] {
			t.Errorf("the job is not told of the pods of %s", name)
		}
	}
	return others
}

// TestPrepareHooks: the job and its rights are there before upgrades that need them and before rollbacks, after the checks;
// the rights are those that it needs, for objects of the release alone.
func TestPrepareHooks(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      *release
		events string
	}{
		{"an installation", must(t, "{}"), "pre-rollback"},
		{"an upgrade that needs nothing", upgraded(t, standing(set+" 20Gi 3 helm"), "{}"), "pre-rollback"},
		{"an upgrade", upgraded(t, standing(set+" 10Gi 3 helm"), "{}"), "pre-upgrade,pre-rollback"},
		{"rendered without a cluster", must(t, "upgrade: {check: {group: always}}"), "pre-install,pre-upgrade,pre-rollback"},
	} {
		before, _ := strings.CutSuffix(c.events, ",pre-rollback")
		for key, want := range map[string]string{"ServiceAccount/prod-db-trireme.prepare": c.events, "Role/prod-db-trireme.prepare": c.events,
			"RoleBinding/prod-db-trireme.prepare": c.events, "Job/prod-db-trireme-prepare": before, "Job/prod-db-trireme-prepare-rollback": "pre-rollback"} {
			if want == "pre-rollback" && key == "Job/prod-db-trireme-prepare" {
				if c.r.objects[key] != nil {
					t.Errorf("%s: there is %s", c.name, key)
				}
				continue
			}
			o, ok := c.r.objects[key].(interface{ GetAnnotations() map[string]string })
			if !ok {
				t.Fatalf("%s: there is no %s", c.name, key)
			}
			weight := "1"
			if strings.HasPrefix(key, "Job/") {
				weight = "2"
			}
			if a := o.GetAnnotations(); a["helm.sh/hook"] != want || a["helm.sh/hook-weight"] != weight || a["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
				t.Errorf("%s: %s: %v", c.name, key, a)
			}
		}
		role := object[*rbacv1.Role](t, c.r, "Role/prod-db-trireme.prepare")
		var rights []string
		for _, rule := range role.Rules {
			rights = append(rights, strings.Join(rule.Verbs, "+")+" "+strings.Join(rule.Resources, "+"))
			for _, n := range rule.ResourceNames {
				if !strings.HasPrefix(strings.TrimPrefix(n, "data-"), set) {
					t.Errorf("%s: it may change %s", c.name, n)
				}
			}
			if len(rule.ResourceNames) == 0 {
				t.Errorf("%s: it may change any of %v", c.name, rule.Resources)
			}
		}
		if want := []string{"get+delete+update statefulsets", "get+patch persistentvolumeclaims"}; !slices.Equal(rights, want) {
			t.Errorf("%s: it may %q, not %q", c.name, rights, want)
		}
		binding := object[*rbacv1.RoleBinding](t, c.r, "RoleBinding/prod-db-trireme.prepare")
		job := object[*batchv1.Job](t, c.r, "Job/prod-db-trireme-prepare-rollback")
		pod := job.Spec.Template
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != pod.Spec.ServiceAccountName || binding.RoleRef.Name != role.Name || !*pod.Spec.AutomountServiceAccountToken {
			t.Errorf("%s: the right is given to %v", c.name, binding.Subjects)
		}
		checkRestricted(t, &corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec})
		for key, o := range c.r.objects {
			if s, ok := o.(*corev1.Service); ok && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s leads to the job", key)
			}
		}
	}
}

// TestHibernate: a group that sleeps has no pods, is not asked whether it is whole, makes no backups, and is founded by as
// many members as before.
func TestHibernate(t *testing.T) {
	r := upgraded(t, running(3), "{hibernate: true, readReplicas: {count: 2}, backup: {enabled: true}}")
	for _, name := range []string{set, readSet} {
		if n := *object[*appsv1.StatefulSet](t, r, "StatefulSet/"+name).Spec.Replicas; n != 0 {
			t.Errorf("%s has %d pods", name, n)
		}
	}
	if got := option(t, r, "http"); got != "" {
		t.Errorf("it is asked at %s", got)
	}
	if f := object[*corev1.ConfigMap](t, r, "ConfigMap/prod-db-trireme-founders").Data["founders"]; f != "3" {
		t.Errorf("%s found it", f)
	}
	if !*object[*batchv1.CronJob](t, r, "CronJob/prod-db-trireme-backup").Spec.Suspend {
		t.Error("backups are made of it")
	}
	awake := must(t, "backup: {enabled: true}")
	if *object[*batchv1.CronJob](t, awake, "CronJob/prod-db-trireme-backup").Spec.Suspend || *object[*appsv1.StatefulSet](t, awake, "StatefulSet/"+set).Spec.Replicas != 3 {
		t.Error("it sleeps")
	}
}
