package onboard

import (
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// LabelDemo is the label by which flux-multitenant-demo finds a tenant's namespace. Its
// value need not be unique, nor the name of a Tenant.
const LabelDemo = "flux-multitenant-demo.ringerc.github.com/tenant-name"

// Values of the annotation [v1beta1.AnnotationForm].
const (
	// FormDemo names objects as ctrl.py of flux-multitenant-demo does, with the source in
	// the home namespace.
	FormDemo = "flux-multitenant-demo"
	// FormDemoShared is FormDemo with the source that all tenants of the demo share.
	FormDemoShared = "flux-multitenant-demo-shared-source"
)

// The demo's names of objects.
const (
	// DemoSource is the GitRepository, in [DemoNamespace] or in the home namespace.
	DemoSource = "default"
	// DemoNamespace has the shared source.
	DemoNamespace = "flux-system"
	// DemoPath is the path that the demo applies for each tenant.
	DemoPath          = "./kustomizations/per-tenant"
	demoKustomization = "dummy"
	demoInterval      = "5m"
	demoLiteral       = "SUBST_LITERAL"
)

// DemoVariables returns the content of the demo's ConfigMap.
func DemoVariables(tenant string) map[string]v1beta1.Variable {
	return map[string]v1beta1.Variable{"PER_TENANT_SUBST": v1beta1.Variable(fmt.Sprintf("This tenant name is %q", tenant))}
}

// isDemo reports whether a Tenant's objects have the names of the demo.
func isDemo(tenant *v1beta1.Tenant) bool { return tenant.Annotations[v1beta1.AnnotationForm] != "" }

// checkForm refuses an unknown form, and one without the objects that it applies.
func checkForm(t *v1beta1.Tenant) error {
	form := t.Annotations[v1beta1.AnnotationForm]
	reconciler := t.Spec.Reconciler
	switch {
	case form == "":
		return nil
	case form != FormDemo && form != FormDemoShared:
		return fmt.Errorf("metadata.annotations: %s is %q; use %s or %s, or leave it out", v1beta1.AnnotationForm, form, FormDemo, FormDemoShared)
	case reconciler == nil:
		return fmt.Errorf("metadata.annotations: %s needs spec.reconciler: the demo's Kustomization acts as its account", v1beta1.AnnotationForm)
	case form == FormDemo && (reconciler.Source == nil || isArtifact(reconciler.Source)):
		return fmt.Errorf("spec.reconciler.source: the form %s needs the URL of a Git repository, which Flux then fetches for this "+
			"Tenant alone", form)
	case reconciler.Variables[demoLiteral] != "":
		return fmt.Errorf("spec.reconciler.variables: in the form %s, %s is always the name of the Tenant: take it out, or use another name",
			form, demoLiteral)
	case form == FormDemoShared && reconciler.Source != nil:
		return fmt.Errorf("spec.reconciler.source: the form %s uses GitRepository %s/%s; leave out the source", form, DemoNamespace, DemoSource)
	}
	return nil
}

// demo renders the Kustomization of the demo, and its source unless that is shared. The
// demo's own names no account, so it could change every namespace; this one acts as the
// team's.
func (r *rendering) demo() {
	sourceRef := map[string]any{"kind": "GitRepository", "name": DemoSource}
	if r.Annotations[v1beta1.AnnotationForm] == FormDemoShared {
		sourceRef["namespace"] = DemoNamespace
	} else {
		r.source(DemoSource, r.Spec.Reconciler.Source)
	}
	build := map[string]any{"substitute": map[string]any{demoLiteral: r.Name}}
	if from := r.substituteFrom(); len(from) > 0 {
		build["substituteFrom"] = from
	}
	r.flux(fluxKustomize, "Kustomization", demoKustomization, map[string]any{
		"force": false, "interval": demoInterval, "path": r.Spec.Reconciler.Path, "prune": true,
		"serviceAccountName": Account(r.Tenant), "sourceRef": sourceRef, "targetNamespace": r.Spec.HomeNamespace, "postBuild": build,
	})
}
