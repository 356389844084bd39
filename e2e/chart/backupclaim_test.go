package chart

import (
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// volumeJob is the job that uses the claim of the backups first; nil: there is none.
func (r *release) volumeJob() *batchv1.Job {
	for key, o := range r.objects {
		if strings.HasPrefix(key, "Job/prod-db-trireme-backup-volume-") {
			return o.(*batchv1.Job)
		}
	}
	return nil
}

// The claim is bound without a backup: a job uses it, where and as whom backups run. Once there is a volume there is no job.
func TestBackupClaimIsBound(t *testing.T) {
	const values = "{nodeSelector: {disk: ssd}, backup: {enabled: true, tolerations: [{key: backups, operator: Exists}], podLabels: {team: db}}}"
	bound := running(3)
	bound["PersistentVolumeClaim/prod-db-trireme-backup"] = "{metadata: {name: prod-db-trireme-backup}, spec: {volumeName: v}}"
	pending := running(3)
	pending["PersistentVolumeClaim/prod-db-trireme-backup"] = "{metadata: {name: prod-db-trireme-backup}, spec: {}}"
	for name, r := range map[string]*release{"an installation": must(t, values), "a claim that waits": upgraded(t, pending, values), "no claim yet": upgraded(t, running(3), values)} {
		job := r.volumeJob()
		if job == nil {
			t.Errorf("%s: nobody uses the claim before the first backup", name)
			continue
		}
		if len(job.Annotations) > 0 {
			t.Errorf("%s: helm has to make it together with the claim: %v", name, job.Annotations)
		}
		backups, _ := cronJob(t, r)
		is, want := job.Spec.Template.Spec, backups.Spec.JobTemplate.Spec.Template.Spec
		if is.Volumes[0].PersistentVolumeClaim.ClaimName != "prod-db-trireme-backup" || is.Containers[0].VolumeMounts[0].Name != is.Volumes[0].Name {
			t.Errorf("%s: %+v", name, is.Volumes)
		}
		if !reflect.DeepEqual(is.NodeSelector, want.NodeSelector) || !reflect.DeepEqual(is.Tolerations, want.Tolerations) || !reflect.DeepEqual(is.SecurityContext, want.SecurityContext) {
			t.Errorf("%s: the volume is made where no backup may run: %+v", name, is)
		}
		for key, o := range r.objects {
			if s, ok := o.(*corev1.Service); ok && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(job.Spec.Template.Labels)) {
				t.Errorf("%s leads to the job", key)
			}
		}
	}
	for name, r := range map[string]*release{"a claim with a volume": upgraded(t, bound, values), "a claim of one's own": must(t, backupsElsewhere)} {
		if job := r.volumeJob(); job != nil {
			t.Errorf("%s: there is a job %s", name, job.Name)
		}
	}
	if must(t, values).volumeJob().Name == must(t, strings.Replace(values, "team: db", "team: shop", 1)).volumeJob().Name {
		t.Error("a job that is changed has the same name: Kubernetes refuses the change")
	}
}

// No claim is made by a hook: policies of hooks, and tools that know them otherwise than Helm, delete what hooks have made.
func TestClaimsAreNoHooks(t *testing.T) {
	for name, values := range installations {
		for key, o := range must(t, values).objects {
			claim, ok := o.(*corev1.PersistentVolumeClaim)
			if !ok {
				continue
			}
			for a := range claim.Annotations {
				if strings.HasPrefix(a, "helm.sh/hook") {
					t.Errorf("%s: %s has %s", name, key, a)
				}
			}
			if claim.Annotations["helm.sh/resource-policy"] != "keep" {
				t.Errorf("%s: %s goes with the release", name, key)
			}
		}
	}
}

// Members know how old a backup may become where backups are made.
func TestBackupAge(t *testing.T) {
	for values, want := range map[string]string{"backup: {enabled: true}": "backup_max_age = 30h", "backup: {enabled: true, maxAgeHours: 87600}": "backup_max_age = 87600h",
		"backup: {enabled: true, maxAgeHours: 0}": "", "backup: {enabled: true, maxAgeHours: null}": "", "backup: {maxAgeHours: 7}": ""} {
		got := ""
		for line := range strings.Lines(must(t, values).settings(t)) {
			if strings.HasPrefix(line, "backup_max_age") {
				got = strings.TrimSpace(line)
			}
		}
		if got != want {
			t.Errorf("with %s the setting is %q", values, got)
		}
	}
}
