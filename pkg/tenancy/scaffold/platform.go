// Package scaffold generates and checks trees of files for Git: the platform's repository in
// the layouts of four published designs, a Tenant's part of it, and a team's own repository.
// It only writes below the given folder, only replaces files that nobody edited, and never
// contacts a cluster or fetches anything.
package scaffold

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/config"
)

// Layout is the layout of a platform's repository.
type Layout string

// The layouts, each named after its design.
const (
	// LayoutFlux is that of flux2-multi-tenancy: a folder for each environment.
	LayoutFlux Layout = "flux"
	// LayoutGroups is that of Flux with TMC: groups of clusters.
	LayoutGroups Layout = "groups"
	// LayoutArc is that of soft multi-tenancy with Arc: a folder for each app and tenant.
	LayoutArc Layout = "arc"
	// LayoutDemo is that of flux-multitenant-demo: one shared source.
	LayoutDemo Layout = "demo"
)

// Platform describes a platform's repository. [Platform.Complete] fills in what is empty.
type Platform struct {
	Layout Layout `json:"layout"`
	// Environments of the layout flux, each with its own cluster.
	Environments []string `json:"environments,omitempty"`
	// Groups of clusters, for the layout groups. Those of [GroupOps] have no tenants.
	Groups []string `json:"groups,omitempty"`
	// Clusters of the layouts groups and arc; for groups as GROUP/NAME.
	Clusters []string `json:"clusters,omitempty"`
	// Constraints are the sets of constraints to install; nil means all that exist.
	Constraints []string `json:"constraints,omitempty"`
	// Enforcement is the enforcementAction of all constraints: dryrun, warn or deny.
	Enforcement string `json:"enforcement,omitempty"`
	// ExemptNamespaces are excluded from the constraint about images: nobody verifies what runs
	// there. Nil means those of the control plane, of Gatekeeper, Landwaiter and Flux, which
	// must start while Landwaiter is down, and others of the platform.
	ExemptNamespaces []string `json:"exemptNamespaces,omitzero"`
	// InfrastructureNamespaces are the platform's own: the rules for teams, about pods and about
	// keys of shared secret stores, exclude them. Their images are verified unless they are also
	// in ExemptNamespaces. Nil means the default of ExemptNamespaces.
	InfrastructureNamespaces []string `json:"infrastructureNamespaces,omitzero"`
	// SecretStores has, by group of the layout groups, the provider of the ClusterSecretStore that
	// all teams of the group's clusters share, as spec.provider of external-secrets.
	SecretStores map[string]map[string]any `json:"secretStores,omitempty"`
	// GitHubOrg limits the sources of tenants to one organization.
	GitHubOrg string `json:"githubOrg,omitempty"`
	// AllowedSources are prefixes of URLs that sources of tenants may have too, such as
	// https://charts.example.com/ or oci://registry.example.com/charts/.
	AllowedSources []string `json:"allowedSources,omitempty"`
	// SOPSAge, SOPSPGP and SOPSKMS are the recipients of encrypted Secrets, at most one of them: age recipients
	// with commas between them, the fingerprint of a PGP key, or a key of a key management service.
	SOPSAge string `json:"sopsAge,omitempty"`
	SOPSPGP string `json:"sopsPGP,omitempty"`
	SOPSKMS string `json:"sopsKMS,omitempty"`
	// Operator installs the operator; then the tree has Tenants, and not their objects.
	Operator bool `json:"operator,omitempty"`
	// ReconcilerPieces are kinds that the teams' accounts may manage in addition to those of every
	// installation, by the names of the chart's pieces, such as flux-images.
	ReconcilerPieces []string `json:"reconcilerPieces,omitempty"`
	// SharedSource allows references across namespaces, which the demo's shared source needs.
	SharedSource bool `json:"sharedSource,omitempty"`
	// Gatekeeper and Landwaiter are the charts to install.
	Gatekeeper Chart `json:"gatekeeper,omitzero"`
	Landwaiter Chart `json:"landwaiter,omitzero"`
	// LandwaiterImage replaces the chart's image repository, for mirrors.
	LandwaiterImage string `json:"landwaiterImage,omitempty"`
	// CheckSHA256 is the checksum of the workflow's program.
	CheckSHA256 string `json:"checkSHA256,omitempty"`
	// Revision is the commit from which this program was built, which the workflow builds if it
	// has no checksum; empty if it is unknown. It is not a setting.
	Revision string `json:"-"`
	// hasManifests says that the folder already has the manifests of the layout demo, which belong to its
	// owner.
	hasManifests bool `json:"-"`
	// instances has the folders in which the Flux Operator installs Flux, with their manifests.
	instances map[string][]string `json:"-"`
	// oldFlux says that the clusters have a Flux that stops at newer arguments.
	oldFlux bool `json:"-"`
}

// Names that are the same in every tree.
const (
	// SettingsFile has the [Platform] of a tree.
	SettingsFile = ".landwaiter.yaml"
	// GroupOps is the group of the platform's own clusters.
	GroupOps = "infra-ops"
	// LandwaiterVersion is the version of the chart, the CRDs and the workflow's program, which
	// must match.
	LandwaiterVersion = "0.1.0"
	gatekeeperVersion = "3.23.1"
	fluxNamespace     = "flux-system"
	// platformSource is the GitRepository of the platform, as flux bootstrap names it.
	platformSource = "flux-system"
)

// Complete returns the platform with defaults, or an error about an invalid value.
func (p Platform) Complete() (Platform, error) {
	// A digest belongs to one version, and each release has another default.
	for name, chart := range map[string]Chart{"gatekeeper": p.Gatekeeper, "landwaiter": p.Landwaiter} {
		if chart.Digest != "" && !exactVersion.MatchString(chart.Version) {
			return p, fmt.Errorf("%s.digest: set %s.version to the version that the digest belongs to", name, name)
		}
	}
	p.Layout = cmp.Or(p.Layout, LayoutFlux)
	p.Enforcement = cmp.Or(p.Enforcement, "dryrun")
	p.Gatekeeper.URL = cmp.Or(p.Gatekeeper.URL, "https://open-policy-agent.github.io/gatekeeper/charts")
	p.Gatekeeper.Version = cmp.Or(p.Gatekeeper.Version, gatekeeperVersion)
	if p.Landwaiter.URL == "" {
		p.Landwaiter.URL = "oci://ghcr.io/landwaiter/charts/landwaiter"
		if !p.Landwaiter.bound() {
			p.Landwaiter.Verify.Secret = releaseKey
		}
	}
	p.Landwaiter.Version = cmp.Or(p.Landwaiter.Version, LandwaiterVersion)
	switch p.Layout {
	case LayoutFlux:
		fillList(&p.Environments, "staging", "production")
	case LayoutGroups:
		fillList(&p.Groups, GroupOps, "dev", "test")
		fillList(&p.Clusters, GroupOps+"/infra-ops", "dev/iris-dev", "test/iris-test")
	case LayoutArc:
		fillList(&p.Clusters, "cluster1")
	case LayoutDemo:
	default:
		return p, fmt.Errorf("layout is %q, it must be flux, groups, arc or demo", p.Layout)
	}
	if p.Constraints == nil && p.Layout != LayoutDemo {
		p.Constraints = constraintSets()
	}
	if p.Layout != LayoutDemo {
		for _, list := range []*[]string{&p.ExemptNamespaces, &p.InfrastructureNamespaces} {
			if *list == nil {
				*list = p.ownNamespaces()
			}
		}
	}
	return p, p.check()
}

// ownNamespaces are the platform's namespaces in the tree, and the control plane's.
func (p Platform) ownNamespaces() []string {
	own := []string{"kube-system", "gatekeeper-system", "landwaiter-system", fluxNamespace}
	if p.Layout == LayoutGroups {
		own = append(own, externalSecretsNamespace)
	}
	return own
}

// owns reports whether a namespace is the platform's.
func (p Platform) owns(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || slices.Contains(p.ownNamespaces(), namespace) ||
		slices.Contains(p.InfrastructureNamespaces, namespace)
}

func fillList(list *[]string, byDefault ...string) {
	if len(*list) == 0 {
		*list = byDefault
	}
}

// check refuses values that would leave the tree, or that have no effect in the layout.
func (p Platform) check() error {
	for _, list := range []struct {
		field   string
		names   []string
		layouts []Layout
	}{
		{"environments", p.Environments, []Layout{LayoutFlux}},
		{"groups", p.Groups, []Layout{LayoutGroups}},
		{"clusters", p.Clusters, []Layout{LayoutGroups, LayoutArc}},
	} {
		if len(list.names) > 0 && !slices.Contains(list.layouts, p.Layout) {
			use := map[Layout]string{LayoutFlux: "; use environments", LayoutGroups: "; use groups and clusters",
				LayoutArc: "; use clusters"}[p.Layout]
			return fmt.Errorf("%s means nothing in the layout %s%s", list.field, p.Layout, use)
		}
		for i, name := range list.names {
			check := checkName
			if list.field == "clusters" {
				check = checkCluster
			}
			for part := range strings.SplitSeq(name, "/") {
				if err := check(list.field+":", part); err != nil {
					return err
				}
			}
			if slices.Contains(list.names[:i], name) {
				return fmt.Errorf("%s: %s is given twice", list.field, name)
			}
		}
	}
	for _, check := range []func() error{p.checkDemo, p.checkClusters, p.checkSources, p.sops().check, p.checkTexts} {
		if err := check(); err != nil {
			return err
		}
	}
	for name, chart := range map[string]Chart{"gatekeeper": p.Gatekeeper, "landwaiter": p.Landwaiter} {
		if err := chart.check(name); err != nil {
			return err
		}
	}
	for field, namespaces := range map[string][]string{"exemptNamespaces:": p.ExemptNamespaces,
		"infrastructureNamespaces:": p.InfrastructureNamespaces} {
		for _, namespace := range namespaces {
			if err := checkName(field, namespace); err != nil {
				return err
			}
		}
	}
	if err := p.checkSecretStores(); err != nil {
		return err
	}
	if !slices.Contains([]string{"dryrun", "warn", "deny"}, p.Enforcement) {
		return fmt.Errorf("enforcement is %q, it must be dryrun, warn or deny", p.Enforcement)
	}
	known := constraintSets()
	for _, set := range p.Constraints {
		if !slices.Contains(known, set) {
			return fmt.Errorf("constraints: %s: there is no such set; use %s", set, strings.Join(known, ", "))
		}
	}
	return p.checkPieces()
}

// checkTexts refuses names of others that do not have their form.
func (p Platform) checkTexts() error {
	for _, pattern := range []struct{ field, value, pattern, example string }{
		{"githubOrg", p.GitHubOrg, `^$|^[A-Za-z0-9](-?[A-Za-z0-9]){0,38}$`, "example-org"},
		{"checkSHA256", p.CheckSHA256, `^$|^[0-9a-f]{64}$`, "64 hexadecimal digits"},
		{"landwaiterImage", p.LandwaiterImage, `^$|^[a-z0-9][a-z0-9.:-]*(/[a-z0-9._-]+)+$`,
			"registry.example.com/landwaiter/landwaiter, without a tag: it is the version of the chart, or image.tag in infrastructure/landwaiter/" +
				valuesFile},
	} {
		if !regexp.MustCompile(pattern.pattern).MatchString(pattern.value) {
			return fmt.Errorf("%s: %q cannot be used; give %s", pattern.field, pattern.value, pattern.example)
		}
	}
	return nil
}

// checkPieces refuses pieces that the chart does not have.
func (p Platform) checkPieces() error {
	var known []string
	for _, name := range matching(config.Files, "pieces/*.yaml") {
		known = append(known, strings.TrimSuffix(path.Base(name), ".yaml"))
	}
	for i, piece := range p.ReconcilerPieces {
		switch {
		case p.Layout == LayoutDemo:
			return fmt.Errorf("reconcilerPieces means nothing in the layout %s, whose tree does not install Landwaiter", p.Layout)
		case !slices.Contains(known, piece):
			return fmt.Errorf("reconcilerPieces: %s: there is no such piece; use %s", piece, strings.Join(known, ", "))
		case slices.Contains(p.ReconcilerPieces[:i], piece):
			return fmt.Errorf("reconcilerPieces: %s is given twice", piece)
		}
	}
	return nil
}

// checkDemo refuses settings that the layout demo does not support.
func (p Platform) checkDemo() error {
	if p.Layout != LayoutDemo {
		return nil
	}
	for _, setting := range []struct {
		field string
		set   bool
	}{{"operator", p.Operator}, {"githubOrg", p.GitHubOrg != ""}, {"allowedSources", len(p.AllowedSources) > 0},
		{"sharedSource", p.SharedSource}, {"enforcement", p.Enforcement != "dryrun"}} {
		if setting.set {
			return fmt.Errorf("%s means nothing in the layout %s, whose tree has the tenants' manifests alone: install Landwaiter apart from it, "+
				"and see the flags of platform bootstrap and tenant add", setting.field, p.Layout)
		}
	}
	return nil
}

func (p Platform) checkSources() error {
	for _, prefix := range p.AllowedSources {
		if !regexp.MustCompile(`^(https|ssh|oci)://[^/\s]+/([^\s]+/)?$`).MatchString(prefix) {
			return fmt.Errorf("allowedSources: %q is no prefix; give https://HOST/, ssh://git@HOST/ or oci://HOST/, with folders if you like, and "+
				"a slash at the end", prefix)
		}
	}
	return nil
}

func (p Platform) checkClusters() error {
	in := map[string]string{}
	for _, cluster := range p.Clusters {
		group, name, ok := strings.Cut(cluster, "/")
		other, twice := in[name]
		in[name] = group
		switch {
		case p.Layout != LayoutGroups && ok:
			return fmt.Errorf("clusters: %s: the layout %s has no groups; give the name alone", cluster, p.Layout)
		case p.Layout != LayoutGroups:
		case !ok || strings.Contains(name, "/"):
			return fmt.Errorf("clusters: %s: give GROUP/NAME, such as dev/%s", cluster, group)
		case twice:
			return fmt.Errorf("clusters: %s is in the groups %s and %s: take it out of one", name, other, group)
		case !slices.Contains(p.Groups, group):
			return fmt.Errorf("clusters: %s: there is no group %s; add %s to groups", cluster, group, group)
		}
	}
	return nil
}

// checkName refuses everything except a single folder.
func checkName(what, name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%s %q is not a name; use at most 63 lower-case letters, digits and dashes", what, name)
	}
	return nil
}

// checkCluster refuses everything except a single folder. Names of clusters may have dots.
func checkCluster(what, name string) error {
	if len(name) > 63 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("%s %q is not a name; use at most 63 lower-case letters, digits, dashes and dots", what, name)
	}
	return nil
}

// ReadPlatform parses the content of a tree's [SettingsFile].
func ReadPlatform(text []byte) (Platform, error) {
	var p Platform
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		return p, fmt.Errorf("read %s: %w", SettingsFile, err)
	}
	if _, err := p.Complete(); err != nil {
		return p, fmt.Errorf("use %s: %w", SettingsFile, err)
	}
	return p, nil
}

// settings is the start of the next run. It omits versions and sets that nobody chose, so
// that a newer program uses its own. It always contains the exempt namespaces, and the
// platform's own.
func (p Platform) settings(complete Platform) string {
	p.Layout, p.Environments, p.Groups, p.Clusters = complete.Layout, complete.Environments, complete.Groups, complete.Clusters
	p.ExemptNamespaces, p.InfrastructureNamespaces = complete.ExemptNamespaces, complete.InfrastructureNamespaces
	return "# What landwaiter platform init was told; the next run starts from it.\n" + encode(p)
}

// NewPlatform returns the tree of a platform's repository.
func NewPlatform(given Platform) (Tree, error) {
	p, err := given.Complete()
	if err != nil {
		return Tree{}, err
	}
	t := Tree{By: "platform init"}
	t.Files = append(t.Files, File{Path: SettingsFile, Text: given.settings(p), Settings: true})
	if sops := p.sops(); sops != (sopsKey{}) {
		t.add(sopsRules, sops.rules())
	}
	if p.Layout == LayoutDemo {
		if !p.hasManifests {
			demoManifests(&t)
		}
		return t, t.sort()
	}
	if p.bootstraps(p.entries()...) {
		t.add("components/flux-lockdown/kustomization.yaml", p.lockdown())
	}
	for _, step := range []func(*Tree){p.definitions, p.gatekeeper, p.landwaiter, templates, p.policies, p.guardrails, p.layout} {
		step(&t)
	}
	t.add(".github/workflows/check.yaml", p.checkWorkflow())
	if p.Layout == LayoutFlux && p.bootstraps(path.Join("clusters", p.Environments[0], "flux-system")) {
		t.add(".github/workflows/e2e.yaml", p.e2eWorkflow())
	}
	return t, t.sort()
}
