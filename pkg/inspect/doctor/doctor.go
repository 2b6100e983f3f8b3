// Package doctor finds what is wrong with an installation: webhooks and providers that do
// not fit each other, rules that exempt what they should not, trust material that expires, permissions
// that reach too far. It reads with the permissions of whoever asks and writes nothing. The rules
// are pure: [Read] collects an [Inventory], [Examine] finds.
package doctor

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// ID names a kind of finding. Programs may depend on it; docs/doctor.md has a section for each.
type ID string

// Severity says what a finding costs.
type Severity string

// The severities.
const (
	// Error means that images which should be denied may run, or that all are denied.
	Error Severity = "error"
	// Warning means that it will break, or is slower or weaker than it should be.
	Warning Severity = "warning"
	// Note is worth knowing, and needs no hurry.
	Note Severity = "note"
)

// Finding is one thing that is wrong, with the command that fixes it.
type Finding struct {
	ID       ID               `json:"id"`
	Severity Severity         `json:"severity"`
	Object   policy.ObjectRef `json:"object"`
	// What says what is wrong, Why what it leads to. Both are one sentence.
	What string `json:"message"`
	Why  string `json:"why"`
	// Command fixes it, as a line for a POSIX shell in the folder of this repository.
	Command string `json:"command"`
	// Keep names the setting without which the next upgrade undoes the command, if there is one.
	Keep string `json:"keep,omitempty"`
	// Docs is where the page about findings explains the ID; [Examine] fills it in.
	Docs string `json:"docs"`
}

// Unchecked names what could not be checked.
type Unchecked struct {
	IDs []ID `json:"ids"`
	// Missing is the permission that is missing, such as "list providers.externaldata.gatekeeper.sh",
	// empty if it is not about a permission.
	Missing string `json:"missingPermission,omitempty"`
	// Unpublished means that only the process knows, and has not said.
	Unpublished bool   `json:"-"`
	Why         string `json:"why"`
}

// Report is what [Examine] found.
type Report struct {
	Findings  []Finding   `json:"findings"`
	Unchecked []Unchecked `json:"unchecked"`
}

// check is one rule with what it reads. It adds what it finds.
type check struct {
	ids   []ID
	needs []Source
	find  func(v *view, add func(Finding))
}

// IDs returns all IDs, sorted.
func IDs() []ID {
	var all []ID
	for _, c := range checks() {
		all = append(all, c.ids...)
	}
	slices.Sort(all)
	return all
}

// checks returns all rules.
func checks() []check {
	asked := []Source{SourceWebhooks, SourceProviders, SourceConstraints, SourceLandwaiter}
	provided := []Source{SourceProviders, SourceConstraints, SourceLandwaiter}
	return []check{
		{[]ID{NoGatekeeper}, []Source{SourceWebhooks}, noGatekeeper},
		{[]ID{WebhookFailsOpen}, asked, failsOpen},
		{[]ID{WebhookTimeout}, asked, webhookTimeout},
		{[]ID{WebhookRules}, asked, webhookRules},
		{[]ID{WebhookObjects, WebhookConditions}, asked, webhookMatch},
		{[]ID{WebhookNamespaces}, append([]Source{SourceNamespaces}, asked...), webhookNamespaces},
		{[]ID{WebhookCA}, asked, webhookAuthority},
		{[]ID{NamespaceIgnored}, []Source{SourceWebhooks, SourceNamespaces}, ignoredNamespaces},
		{[]ID{CacheTTL, ExternalDataDisabled, ExemptableNamespaces}, []Source{SourceWebhooks, SourceGatekeeper}, gatekeeperFlags},
		{[]ID{AuditOff}, []Source{SourceWebhooks, SourceGatekeeper}, audit},
		{[]ID{ConfigIgnores}, []Source{SourceWebhooks, SourceConfigs}, configs},
		{[]ID{ProviderMissing}, provided, missingProviders},
		{[]ID{ProviderTimeout}, provided, providerTimeout},
		{[]ID{ProviderURL}, provided, providerURL},
		{[]ID{ProviderCA}, provided, providerAuthority},
		{[]ID{NoTemplate, TemplateChanged}, []Source{SourceTemplates}, template},
		{[]ID{NoConstraint, NothingDenied, ConstraintKinds, ConstraintExempt}, []Source{SourceConstraints, SourceWebhooks}, constraints},
		{[]ID{ResourceNotReady}, []Source{SourceResources}, notReady},
		{[]ID{ResourceInvalid}, []Source{SourceResources}, invalid},
		{[]ID{ResourceUnsatisfiable, ResourceUnused}, []Source{SourceResources}, notEffective},
		{[]ID{TrustEnds}, []Source{SourceResources}, ends},
		{[]ID{GuardrailMissing, GuardrailChanged, GuardrailFailsOpen, GuardrailNotDeny}, []Source{SourceGuardrails, SourceLandwaiter, SourceResources}, guardrails},
		{[]ID{NoLandwaiter, NoReplicas, SingleReplica, NoClientAuth}, []Source{SourceLandwaiter}, deployment},
		{[]ID{CRDsMissing, VersionSkew}, []Source{SourceLandwaiter, SourceDefinitions}, definitions},
		{[]ID{LeaseStale}, []Source{SourceLandwaiter, SourceLease}, lease},
		{[]ID{RevocationHostNotAllowed}, []Source{SourceResources, SourceLandwaiter}, unreachable},
		{[]ID{TrustWithinReach}, []Source{SourceResources, SourceRights, SourceLandwaiter, SourceWebhooks}, withinReach},
		{[]ID{BroadAccess}, []Source{SourceRights}, broad},
		{[]ID{RoleMissing}, []Source{SourceRights, SourceLandwaiter}, renamed},
		{[]ID{RedisUnreachable, RedisPermissions, RedisEviction, ClockSkew, RegistryUnreachable}, []Source{SourceFacts, SourceLandwaiter, SourceResources, SourceLease}, badFacts},
	}
}

// Examine returns what is wrong, the worst first, and what could not be checked. Resources that
// schemas refuse are wrong.
func Examine(inventory *Inventory, schemas resource.Schemas) Report {
	v := newView(inventory)
	v.refusals = sync.OnceValue(func() map[policy.ObjectRef]error { return refusalsOf(inventory.Resources, schemas) })
	report := Report{Findings: []Finding{}}
	for _, c := range checks() {
		unread := false
		for _, source := range c.needs {
			if why, ok := inventory.Unread[source]; ok {
				unread = true
				report.Unchecked = append(report.Unchecked, Unchecked{IDs: c.ids, Missing: why.Missing, Why: why.Why})
			}
		}
		if !unread {
			c.find(v, func(f Finding) { report.Findings = append(report.Findings, f) })
		}
	}
	report.Unchecked = append(merged(report.Unchecked), unknownFacts(v)...)
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID), strings.Compare(a.Object.String(), b.Object.String()))
	})
	for i := range report.Findings {
		f := &report.Findings[i]
		f.What, f.Why = policy.Shown(f.What, maxText), policy.Shown(f.Why, maxText) // names and messages in a cluster are anybody's
		f.Docs = "docs/doctor.md#" + strings.ToLower(string(f.ID))
	}
	return report
}

// rank orders findings by what they cost. While nobody answers, nothing else matters.
func rank(f Finding) int {
	if f.ID == NoLandwaiter || f.ID == NoReplicas {
		return -1
	}
	return slices.Index([]Severity{Error, Warning, Note}, f.Severity)
}

// merged joins what is unchecked for the same reason.
func merged(list []Unchecked) []Unchecked {
	made := []Unchecked{}
	for _, u := range list {
		at := slices.IndexFunc(made, func(m Unchecked) bool { return m.Missing == u.Missing && m.Why == u.Why })
		if at < 0 {
			made, at = append(made, Unchecked{Missing: u.Missing, Why: u.Why}), len(made)
		}
		made[at].IDs = append(made[at].IDs, u.IDs...)
	}
	for i := range made {
		slices.Sort(made[i].IDs)
		made[i].IDs = slices.Compact(made[i].IDs)
	}
	return made
}
