package chart

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podoptions "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
)

// accepted demands that Kubernetes' API would take an object, by what it checks of one that is made: its own code. The object is not changed.
func accepted(o runtime.Object) error {
	gvks, _, err := legacyscheme.Scheme.ObjectKinds(o)
	if err != nil {
		return nil // not Kubernetes' own
	}
	o = o.DeepCopyObject()
	o.(metav1.Object).SetNamespace("prod")
	legacyscheme.Scheme.Default(o)
	internal, err := legacyscheme.Scheme.ConvertToVersion(o, runtime.InternalGroupVersioner)
	if err != nil {
		return err
	}
	if errs := invalid(internal); len(errs) > 0 {
		return fmt.Errorf("Kubernetes takes no such %s %s: %w", gvks[0].Kind, o.(metav1.Object).GetName(), errs.ToAggregate())
	}
	return nil
}

// invalid is what Kubernetes has against an object of its own.
func invalid(o runtime.Object) field.ErrorList {
	switch o := o.(type) {
	case *apps.StatefulSet:
		return appsvalidation.ValidateStatefulSet(o, podoptions.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *batch.Job:
		selected(o)
		return batchvalidation.ValidateJob(o, batchvalidation.JobValidationOptions{PodValidationOptions: podoptions.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil), RequirePrefixedLabels: true})
	case *batch.CronJob:
		return batchvalidation.ValidateCronJobCreate(o, podoptions.GetValidationOptionsFromPodTemplate(&o.Spec.JobTemplate.Spec.Template, nil))
	case *core.Pod:
		return corevalidation.ValidatePodCreate(o, podoptions.GetValidationOptionsFromPodSpecAndMeta(&o.Spec, nil, &o.ObjectMeta, nil))
	case *core.Service:
		if o.Spec.ClusterIP != "" { // the API does so before it checks
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		return corevalidation.ValidateServiceCreate(o)
	case *core.PersistentVolumeClaim:
		return corevalidation.ValidatePersistentVolumeClaim(o, corevalidation.ValidationOptionsForPersistentVolumeClaimCreate())
	case *core.Secret:
		return corevalidation.ValidateSecret(o)
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o)
	case *core.ServiceAccount:
		return corevalidation.ValidateServiceAccount(o)
	case *networking.NetworkPolicy:
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	case *policy.PodDisruptionBudget:
		return append(corevalidation.ValidateObjectMeta(&o.ObjectMeta, true, corevalidation.ValidatePodName, field.NewPath("metadata")),
			policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})...)
	case *rbac.Role:
		return rbacvalidation.ValidateRole(o)
	case *rbac.RoleBinding:
		return rbacvalidation.ValidateRoleBinding(o)
	}
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("nobody knows what Kubernetes checks of %T", o))}
}

// selected gives a job what the API gives it before it checks it.
func selected(j *batch.Job) {
	j.UID = "00000000-0000-0000-0000-000000000000"
	if j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = map[string]string{}
	}
	maps.Copy(j.Spec.Template.Labels, map[string]string{batch.LegacyControllerUidLabel: string(j.UID), batch.LegacyJobNameLabel: j.Name, batch.ControllerUidLabel: string(j.UID), batch.JobNameLabel: j.Name})
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batch.ControllerUidLabel: string(j.UID)}}
}

// TestAccepted: what Kubernetes would refuse this test sees.
func TestAccepted(t *testing.T) {
	r := must(t, "{"+everything+"}")
	for key, o := range r.objects {
		if err := accepted(o); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	const values = "extraEnv: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nothing}}}]" // e2e/kubernetes counts on it
	if _, err := render(values); err == nil || !strings.Contains(err.Error(), "field label not supported: spec.nothing") {
		t.Errorf("%s: %.600v", values, err)
	}
}
