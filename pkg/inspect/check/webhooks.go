package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about Gatekeeper's webhooks and the namespaces that they exclude.
const (
	NoGatekeeper      = "NoGatekeeper"
	WebhookFailsOpen  = "WebhookFailsOpen"
	WebhookTimeout    = "WebhookTimeout"
	WebhookRules      = "WebhookRules"
	WebhookNamespaces = "WebhookNamespaces"
	WebhookObjects    = "WebhookObjects"
	WebhookConditions = "WebhookConditions"
	WebhookCA         = "WebhookCA"
	NamespaceIgnored  = "NamespaceIgnored"
)

const ignoreLabelUnasked = "anyone who can label a namespace can then exempt it from Gatekeeper"

func noGatekeeper(v *view, add func(resource.Finding)) {
	if slices.ContainsFunc(v.hooks, func(h hook) bool { return !h.mutating && !h.label }) {
		return
	}
	add(resource.Finding{ID: NoGatekeeper, Severity: resource.Error,
		Object: policy.ObjectRef{Kind: "Namespace", Name: v.gatekeeperNamespace()},
		Message: "no validating webhook of Gatekeeper is registered: none is named validation.gatekeeper.sh or has the label " +
			"gatekeeper.sh/system",
		Why: "Gatekeeper never asks Landwaiter, so every image is admitted",
		Command: fmt.Sprintf("helm upgrade gatekeeper gatekeeper/gatekeeper --install --namespace %s --create-namespace "+
			"--reset-then-reuse-values --values config/gatekeeper/values.yaml",
			resource.ShellWord(v.gatekeeperNamespace())),
		Keep: "Gatekeeper's values in config/gatekeeper/values.yaml"})
}

// path is the path of a field of the webhook, in a JSON patch.
func (h hook) path(field string) string { return "/webhooks/" + strconv.Itoa(h.index) + "/" + field }

// set returns the command that sets a field of the webhook.
func (h hook) set(field string, value any) string {
	return h.patch(operation{"test", h.path("name"), h.webhook.Name}, operation{"add", h.path(field), value})
}

func failsOpen(v *view, add func(resource.Finding)) {
	asked := v.asked()
	for _, h := range v.hooks {
		if h.label {
			asked = append(asked, h)
		}
	}
	for _, h := range asked {
		if h.webhook.FailurePolicy == nil || *h.webhook.FailurePolicy == admissionv1.Fail {
			continue
		}
		why := "if Gatekeeper or Landwaiter does not answer in time, a pod is admitted unverified"
		keep := "Gatekeeper's value validatingWebhookFailurePolicy: Fail"
		switch {
		case h.label:
			why, keep = ignoreLabelUnasked, "Gatekeeper's value validatingWebhookCheckIgnoreFailurePolicy: Fail"
		case h.mutating:
			why, keep = "if Gatekeeper or Landwaiter does not answer in time, a pod keeps its tag",
				"Gatekeeper's value mutatingWebhookFailurePolicy: Fail"
		}
		add(resource.Finding{ID: WebhookFailsOpen, Severity: resource.Error, Object: h.ObjectRef,
			Message: fmt.Sprintf("webhook %s has failurePolicy %s", h.webhook.Name, *h.webhook.FailurePolicy),
			Why:     why, Command: h.set("failurePolicy", "Fail"), Keep: keep})
	}
}

// webhookTimeout finds webhooks that time out before Gatekeeper can say why.
func webhookTimeout(v *view, add func(resource.Finding)) {
	for _, h := range v.asked() {
		needs := 0
		for _, p := range v.ours() {
			if p.mutates() == h.mutating {
				needs = max(needs, v.fitting(p))
			}
		}
		has := defaultWebhookSeconds
		if h.webhook.TimeoutSeconds != nil {
			has = int(*h.webhook.TimeoutSeconds)
		}
		if has > needs {
			continue
		}
		keep := "Gatekeeper's value validatingWebhookTimeoutSeconds"
		if h.mutating {
			keep = "Gatekeeper's value mutatingWebhookTimeoutSeconds"
		}
		add(resource.Finding{ID: WebhookTimeout, Severity: resource.Error, Object: h.ObjectRef,
			Message: fmt.Sprintf("webhook %s has timeoutSeconds %d, and Gatekeeper waits up to %d seconds for Landwaiter",
				h.webhook.Name, has, needs),
			Why:     "the API server gives up first: users see only a timeout, and with failurePolicy Ignore the pod is admitted",
			Command: h.set("timeoutSeconds", min(needs+1, 30)), Keep: fmt.Sprintf("%s: %d", keep, min(needs+1, 30))})
	}
}

// asksAbout reports whether a webhook is called for an operation on a resource of the core group.
func (h hook) asksAbout(operation admissionv1.OperationType, resource string) bool {
	return slices.ContainsFunc(h.webhook.Rules, func(r admissionv1.RuleWithOperations) bool {
		whole, sub, isSub := strings.Cut(resource, "/")
		return covers(r.APIGroups, "") && covers(r.APIVersions, "v1") && (r.Scope == nil || *r.Scope != admissionv1.ClusterScope) &&
			slices.ContainsFunc(r.Operations, func(o admissionv1.OperationType) bool { return o == operation || o == admissionv1.OperationAll }) &&
			slices.ContainsFunc(r.Resources, func(s string) bool {
				return s == resource || s == "*/*" || !isSub && s == "*" || isSub && (s == whole+"/*" || s == "*/"+sub)
			})
	})
}

func covers(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

func webhookRules(v *view, add func(resource.Finding)) {
	for _, h := range v.asked() {
		var missing []string
		for _, need := range []struct {
			operation admissionv1.OperationType
			resource  string
		}{{admissionv1.Create, "pods"}, {admissionv1.Update, "pods"}, {admissionv1.Update, "pods/ephemeralcontainers"}} {
			if h.mutating && need.resource == "pods" && need.operation == admissionv1.Update {
				continue // pods are pinned on creation
			}
			if !h.asksAbout(need.operation, need.resource) {
				missing = append(missing, string(need.operation)+" "+need.resource)
			}
		}
		if len(missing) == 0 {
			continue
		}
		rule := map[string]any{"apiGroups": []string{""}, "apiVersions": []string{"*"}, "operations": []string{"CREATE", "UPDATE"},
			"resources": []string{"pods", "pods/ephemeralcontainers"}, "scope": "*"}
		add(resource.Finding{ID: WebhookRules, Severity: resource.Error, Object: h.ObjectRef,
			Message: fmt.Sprintf("webhook %s is not called for %s", h.webhook.Name, named(missing)),
			Why:     "an image that enters that way is not verified, such as that of a debug container",
			Command: h.patch(operation{"test", h.path("name"), h.webhook.Name}, operation{"add", h.path("rules/-"), rule}),
			Keep:    "Gatekeeper's values validatingWebhookCustomRules and mutatingWebhookCustomRules"})
	}
}

// webhookMatch finds selectors of objects, and conditions that differ from
// config/gatekeeper/values.yaml.
func webhookMatch(v *view, add func(resource.Finding)) {
	for _, h := range v.asked() {
		if s := h.webhook.ObjectSelector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
			add(resource.Finding{ID: WebhookObjects, Severity: resource.Error, Object: h.ObjectRef,
				Message: fmt.Sprintf("webhook %s has the objectSelector %s", h.webhook.Name, metav1.FormatLabelSelector(s)),
				Why:     "the author of a pod chooses its labels, and so decides whether it is verified",
				Command: h.set("objectSelector", map[string]any{}),
				Keep:    "Gatekeeper's values validatingWebhookObjectSelector and mutatingWebhookObjectSelector: {}"})
		}
		known := knownConditions(h.mutating)
		if at := slices.IndexFunc(h.webhook.MatchConditions, func(c admissionv1.MatchCondition) bool {
			return !slices.Contains(known, squeezed(c.Expression))
		}); at >= 0 {
			kept := slices.DeleteFunc(slices.Clone(h.webhook.MatchConditions), func(c admissionv1.MatchCondition) bool {
				return !slices.Contains(known, squeezed(c.Expression))
			})
			if kept == nil {
				kept = []admissionv1.MatchCondition{}
			}
			add(resource.Finding{ID: WebhookConditions, Severity: resource.Warning, Object: h.ObjectRef,
				Message: fmt.Sprintf("webhook %s has the matchCondition %s, which is not among those of config/gatekeeper/values.yaml for it: %s",
					h.webhook.Name, h.webhook.MatchConditions[at].Name, h.webhook.MatchConditions[at].Expression),
				Why:     "objects that the condition excludes are not verified, and only its author knows which they are",
				Command: h.set("matchConditions", kept), Keep: "Gatekeeper's values validatingWebhookMatchConditions and " +
					"mutatingWebhookMatchConditions"})
		}
	}
}

// squeezed returns an expression without spaces, which YAML folds.
func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

func webhookNamespaces(v *view, add func(resource.Finding)) {
	for _, h := range v.asked() {
		left := v.unmatched(h.webhook.NamespaceSelector)
		if len(left) == 0 {
			continue
		}
		expressions := []any{}
		if heeds(h.webhook.NamespaceSelector, v1beta1.LabelGatekeeperIgnore) {
			expressions = append(expressions, map[string]any{"key": v1beta1.LabelGatekeeperIgnore, "operator": "DoesNotExist"})
		}
		if kept := v.leftOut(h.webhook.NamespaceSelector); len(kept) > 0 { // verified images stay verified
			expressions = append(expressions, map[string]any{"key": corev1.LabelMetadataName, "operator": "NotIn", "values": kept})
		}
		selector := map[string]any{"matchExpressions": expressions}
		add(resource.Finding{ID: WebhookNamespaces, Severity: resource.Error, Object: h.ObjectRef,
			Message: fmt.Sprintf("webhook %s is not called for namespace %s", h.webhook.Name, named(left)),
			Why:     "every image is admitted there", Command: h.set("namespaceSelector", selector),
			Keep: "Gatekeeper's values validatingWebhookExemptNamespacesLabels and mutatingWebhookExemptNamespacesLabels"})
	}
}

// webhookAuthority finds webhooks that the API server will soon no longer trust.
func webhookAuthority(v *view, add func(resource.Finding)) {
	for _, h := range v.asked() {
		said, severity := endOf(h.webhook.ClientConfig.CABundle, v.Now)
		if said == "" {
			continue
		}
		add(resource.Finding{ID: WebhookCA, Severity: severity, Object: h.ObjectRef,
			Message: fmt.Sprintf("the caBundle of webhook %s %s", h.webhook.Name, said),
			Why:     "the API server then cannot call Gatekeeper: nothing can be changed, or everything is admitted",
			Command: "kubectl delete secret gatekeeper-webhook-server-cert --namespace=" + resource.ShellWord(v.gatekeeperNamespace()),
			Keep:    "Gatekeeper creates the next CA by itself; if cert-manager issues the certificate, renew it there"})
	}
}

func ignoredNamespaces(v *view, add func(resource.Finding)) {
	for _, n := range v.Namespaces {
		if value, ok := n.Labels[v1beta1.LabelGatekeeperIgnore]; ok && !slices.Contains(v.exempt(), n.Name) {
			add(resource.Finding{ID: NamespaceIgnored, Severity: resource.Error, Object: policy.ObjectRef{Kind: "Namespace", Name: n.Name},
				Message: fmt.Sprintf("it has the label %s=%s", v1beta1.LabelGatekeeperIgnore, value),
				Why:     "the API server does not ask Gatekeeper about it, so every image is admitted there",
				Command: "kubectl label namespace " + resource.ShellWord(n.Name) + " " + v1beta1.LabelGatekeeperIgnore + "-"})
		}
	}
}
