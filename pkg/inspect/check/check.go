// Package check finds problems of an installation: webhooks and providers that do not match, rules
// that exempt too much, trust material that expires, permissions that are too wide. It reads with the
// caller's permissions and writes nothing. The rules are pure: [Read] collects an [Inventory], and
// [Examine] evaluates it.
package check

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Report is the result of [Examine].
type Report struct {
	Findings  []resource.Finding   `json:"findings"`
	Unchecked []resource.Unchecked `json:"unchecked"`
}

// check is one rule with its sources. It adds findings, and may say what it could not check.
type check struct {
	ids     []string
	needs   []Source
	find    func(v *view, add func(resource.Finding))
	unknown func(v *view) []resource.Unchecked
}

// IDs returns all IDs, sorted.
func IDs() []string {
	var all []string
	for _, c := range checks() {
		all = append(all, c.ids...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checks returns all rules.
func checks() []check {
	asked := []Source{SourceWebhooks, SourceProviders, SourceConstraints, SourceLandwaiter}
	provided := []Source{SourceProviders, SourceConstraints, SourceLandwaiter}
	return []check{
		{[]string{NoGatekeeper}, []Source{SourceWebhooks}, noGatekeeper, nil},
		{[]string{WebhookFailsOpen}, asked, failsOpen, nil},
		{[]string{WebhookTimeout}, asked, webhookTimeout, nil},
		{[]string{WebhookRules}, asked, webhookRules, nil},
		{[]string{WebhookObjects, WebhookConditions}, asked, webhookMatch, nil},
		{[]string{WebhookNamespaces}, append([]Source{SourceNamespaces}, asked...), webhookNamespaces, nil},
		{[]string{WebhookCA}, asked, webhookAuthority, nil},
		{[]string{NamespaceIgnored}, []Source{SourceWebhooks, SourceNamespaces}, ignoredNamespaces, nil},
		{[]string{CacheTTL, ExternalDataDisabled, ServingThreads, ExemptableNamespaces}, []Source{SourceWebhooks, SourceGatekeeper},
			gatekeeperFlags, nil},
		{[]string{AuditOff}, []Source{SourceWebhooks, SourceGatekeeper}, audit, nil},
		{[]string{ConfigIgnores}, []Source{SourceWebhooks, SourceConfigs}, configs, nil},
		{[]string{ProviderMissing}, provided, missingProviders, nil},
		{[]string{ProviderTimeout}, provided, providerTimeout, nil},
		{[]string{ProviderURL}, provided, providerURL, nil},
		{[]string{ProviderCA}, provided, providerAuthority, nil},
		{[]string{CertificateContested}, provided, contested, nil},
		{[]string{NoTemplate, TemplateChanged}, []Source{SourceTemplates}, template, nil},
		{[]string{NoConstraint, NothingDenied, ConstraintKinds, ConstraintExempt, ImagesExempt}, []Source{SourceConstraints, SourceWebhooks},
			constraints, nil},
		{[]string{ResourceNotReady}, []Source{SourceResources}, notReady, nil},
		{[]string{ResourceInvalid}, []Source{SourceResources}, invalid, nil},
		{[]string{ResourceUnsatisfiable, ResourceUnused}, []Source{SourceResources}, notEffective, nil},
		{resource.ReviewReasons(), []Source{SourceResources}, needReview, nil},
		{[]string{TrustEnds}, []Source{SourceResources}, ends, nil},
		{GuardrailIDs(), []Source{SourceGuardrails, SourceLandwaiter, SourceResources, SourceRights}, guardrails, uncompared},
		{[]string{NoLandwaiter, NoReplicas, SingleReplica, NoClientAuth}, []Source{SourceLandwaiter}, deployment, nil},
		{[]string{NoAnswer}, []Source{SourceAnswers, SourceProviders, SourceConstraints, SourceWebhooks, SourceLandwaiter}, noAnswer, nil},
		{[]string{CRDsMissing, VersionSkew}, []Source{SourceLandwaiter, SourceDefinitions}, definitions, nil},
		{[]string{ShortNames}, []Source{SourceNodes}, shortNames, nil},
		{[]string{LeaseStale}, []Source{SourceLandwaiter, SourceLease}, lease, nil},
		{[]string{TenantStuck}, []Source{SourceResources, SourceLandwaiter, SourceOperator}, stuck, nil},
		{[]string{RevocationHostNotAllowed}, []Source{SourceResources, SourceLandwaiter}, unreachable, nil},
		{[]string{TrustWithinReach}, []Source{SourceResources, SourceRights, SourceLandwaiter, SourceWebhooks}, withinReach, nil},
		{[]string{BroadAccess}, []Source{SourceRights}, broad, nil},
		{[]string{RedisUnreachable, RedisPermissions, RedisEviction, ClockSkew, RegistryUnreachable, ReferrersMissing},
			[]Source{SourceFacts, SourceLandwaiter, SourceResources, SourceLease}, badFacts, nil},
		{[]string{RegistryUnreachable}, []Source{SourceOutages, SourceResources}, lasting, nil},
	}
}

// wanted returns the rules with an ID of [Options.Only].
func (o Options) wanted() []check {
	return slices.DeleteFunc(checks(), func(c check) bool {
		return len(o.Only) > 0 && !slices.ContainsFunc(c.ids, func(id string) bool { return slices.Contains(o.Only, id) })
	})
}

// needs reports whether a wanted rule reads a source.
func (o Options) needs(source Source) bool {
	return slices.ContainsFunc(o.wanted(), func(c check) bool { return slices.Contains(c.needs, source) })
}

// Examine returns the problems, the worst first, and the checks that were not possible.
// Resources that schemas refuse are problems.
func Examine(inventory *Inventory, schemas resource.Schemas) Report {
	v := newView(inventory)
	v.refusals = sync.OnceValue(func() map[policy.ObjectRef]error { return refusalsOf(inventory.Resources, schemas) })
	report := Report{Findings: []resource.Finding{}}
	for _, c := range inventory.wanted() {
		unread := false
		for _, source := range c.needs {
			if why, ok := inventory.Unread[source]; ok {
				unread = true
				report.Unchecked = append(report.Unchecked, resource.Unchecked{IDs: c.ids, Missing: why.Missing, Why: why.Why})
			}
		}
		if unread && !c.onlyResources() { // those that were read can be judged alone
			continue
		}
		c.find(v, func(f resource.Finding) {
			v.soften(&f)
			report.Findings = append(report.Findings, f)
		})
		if c.unknown != nil {
			report.Unchecked = append(report.Unchecked, c.unknown(v)...)
		}
	}
	report.Unchecked = merged(report.Unchecked)
	if inventory.needs(SourceAnswers) {
		report.Unchecked = append(report.Unchecked, unheardOf(v)...)
	}
	if inventory.needs(SourceFacts) {
		report.Unchecked = append(report.Unchecked, unknownFacts(v)...)
	}
	slices.SortStableFunc(report.Findings, func(a, b resource.Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID), strings.Compare(a.Object.String(), b.Object.String()))
	})
	for i := range report.Findings {
		f := &report.Findings[i]
		f.Message, f.Why = Shown(f.Message), Shown(f.Why) // anybody can choose names and messages in a cluster
		f.Docs = "docs/reference/findings.md#" + strings.ToLower(f.ID)
	}
	return report
}

// Down reports whether a finding says that Landwaiter does not answer.
func Down(id string) bool { return id == NoLandwaiter || id == NoReplicas || id == NoAnswer }

// rank orders findings by severity. While nobody answers, nothing else matters.
func rank(f resource.Finding) int {
	if Down(f.ID) {
		return -1
	}
	return f.Severity.Rank()
}

// merged joins unchecked entries with the same reason.
func merged(list []resource.Unchecked) []resource.Unchecked {
	made := []resource.Unchecked{}
	for _, u := range list {
		at := slices.IndexFunc(made, func(m resource.Unchecked) bool { return m.Missing == u.Missing && m.Why == u.Why })
		if at < 0 {
			made, at = append(made, resource.Unchecked{Missing: u.Missing, Why: u.Why}), len(made)
		}
		made[at].IDs = append(made[at].IDs, u.IDs...)
	}
	for i := range made {
		slices.Sort(made[i].IDs)
		made[i].IDs = slices.Compact(made[i].IDs)
	}
	return made
}
