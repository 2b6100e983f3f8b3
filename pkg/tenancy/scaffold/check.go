package scaffold

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// CheckOptions are the functions that a check needs from its caller.
type CheckOptions struct {
	// Resources checks resources of landwaiter.dev, given as YAML, and returns their errors:
	// severity, ID and a message that begins with the object. The ID of a missing object is
	// [MissingID] if it may be elsewhere: whole says that the text has everything that a cluster
	// has. Nil omits the check.
	Resources func(ctx context.Context, text string, whole bool) ([]resource.Finding, error)
	// Signer judges an identity of spec.verify.matchOIDCIdentity. It returns the ID of a finding and
	// the error, "" if there is none. Nil omits the check.
	Signer func(issuer, subject string) (id, wrong string)
	// Near returns the most similar of some names for a misspelt one; ok is false if none is similar. Without
	// it, every unknown field counts as misspelt.
	Near func(name string, names []string) (nearest string, ok bool)
	// MayAllow predicts what could be allowed. Nil omits the check whether constraints lock the
	// platform out.
	MayAllow MayAllow
}

// MissingID is the ID of findings about resources that may be elsewhere.
const MissingID = "NotFound"

// CheckReport is the result of a check.
type CheckReport struct {
	// Kustomizations counts the built folders.
	Kustomizations int `json:"kustomizations"`
	// Clusters are the folders with which Flux begins, with the cluster of each.
	Clusters []string `json:"clusters"`
	// Findings have the file and no object.
	Findings []resource.Finding `json:"findings"`
}

// Check checks a platform's repository: it builds every kustomization, follows Flux from each
// cluster's folder through everything that the tree applies there, and searches each file for
// Secrets. It only reads files, follows no link, runs nothing and fetches nothing, whatever
// is in the tree. It fails if the tree cannot be read; errors in the tree are findings.
func Check(ctx context.Context, dir string, o CheckOptions) (CheckReport, error) {
	c, err := newChecker(o)
	if err != nil {
		return CheckReport{}, err
	}
	if err := c.load(dir); err != nil {
		return CheckReport{}, err
	}
	c.inspect()
	if text, ok := c.files[SettingsFile]; ok {
		if settings, err := ReadPlatform(text); err != nil {
			c.find("SettingsInvalid", SettingsFile, "%v", err)
		} else {
			settings, _ = settings.Complete() // as ReadPlatform has tried
			settings.knowsFlux(func(name string) []byte { return c.files[name] })
			c.settings = &settings
		}
	}
	c.unknownProviders()
	part := c.partOfTree(dir)
	clusters := c.clusters()
	c.see(ignoreOf(clusters))
	given := c.folders()
	if c.settings == nil && len(clusters) == 0 {
		given = append(given, c.loose()...)
	}
	if len(given) == 0 && len(clusters) == 0 {
		c.find("NothingToCheck", ".", "there is no kustomization, so nothing was checked: give the folder that landwaiter platform init wrote, "+
			"or a team's repository")
	}
	report := CheckReport{Clusters: []string{}}
	for _, cluster := range clusters {
		if err := ctx.Err(); err != nil {
			return CheckReport{}, err
		}
		report.Clusters = append(report.Clusters, cluster.name())
		if err := c.cluster(ctx, cluster); err != nil {
			return CheckReport{}, err
		}
	}
	c.see(ignoreOf(clusters))
	c.unused(given)
	for _, folder := range given {
		if err := ctx.Err(); err != nil {
			return CheckReport{}, err
		}
		if c.buildable(folder) && len(c.changed[folder]) == 0 { // otherwise, what Flux applies of it was checked
			c.objects(folder, c.build(folder).objects)
			if len(report.Clusters) == 0 { // otherwise, it was checked against the clusters' CRDs
				c.served(from(folder, c.build(folder).objects))
			}
		}
	}
	if c.settings == nil && len(clusters) == 0 && !part {
		if err := c.teamRepository(ctx, given); err != nil {
			return CheckReport{}, err
		}
	}
	c.lockdowns()
	c.orphans()
	report.Kustomizations = c.countBuilt()
	report.Findings = c.sorted()
	return report, nil
}

// partOfTree finds that a folder is inside a platform's repository, in which case no cluster is followed, and
// reports whether it is.
func (c *checker) partOfTree(dir string) bool {
	if _, ok := c.files[SettingsFile]; ok {
		return false
	}
	parent, err := treeAround(dir)
	if err != nil || parent == "" {
		return false
	}
	c.report(resource.Warning, "NoClusterFollowed", ".", "this folder is a part of the platform's repository %s, so no cluster was "+
		"followed, and most was not checked: run landwaiter platform check %s", parent, parent)
	return true
}

// sorted returns the result.
func (c *checker) sorted() []resource.Finding {
	found := slices.AppendSeq([]resource.Finding{}, maps.Keys(c.findings))
	slices.SortFunc(found, func(a, b resource.Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Message, b.Message))
	})
	return found
}

func newChecker(o CheckOptions) (*checker, error) {
	scheme, err := builtin()
	if err != nil {
		return nil, err
	}
	return &checker{files: map[string][]byte{}, memory: newMemory(), ignores: map[string]string{}, defined: map[string]bool{},
		bad: map[string]bool{}, findings: map[resource.Finding]bool{},
		places: map[string][]string{}, plain: map[string]bool{}, virtual: map[string]bool{}, builds: map[string]*built{},
		changed: map[string]map[string]*built{}, reached: map[string]bool{}, patched: map[string]bool{},
		counts: map[string]int{}, maxBuilt: maxBuilt, options: o, scheme: scheme, flavours: fluxFields()}, nil
}

// folders are those with their own kustomization.
func (c *checker) folders() []string {
	var folders []string
	for name := range c.files {
		if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
			folders = append(folders, path.Dir(name))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// buildable reports whether a folder is built separately; a component is not.
func (c *checker) buildable(folder string) bool {
	documents, err := parse(c.files[c.kustomizationFile(folder)])
	return err != nil || len(documents) == 0 || textOf(documents[0], "kind") != "Component"
}

// hidden reports whether a path belongs to a tool, such as .github.
func hidden(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
}

// of returns the file of a built object: the one below the folder, or the only one, with its
// kind and name that is not a patch; else the kustomization.
func (c *checker) of(folder string, o *unstructured.Unstructured) string {
	candidates := slices.DeleteFunc(slices.Clone(c.places[o.GetKind()+" "+o.GetName()]),
		func(name string) bool { return path.Base(name) == valuesFile || c.patched[name] })
	near := slices.DeleteFunc(slices.Clone(candidates), func(name string) bool { return !within(name, folder) })
	switch {
	case len(near) == 1:
		return near[0]
	case len(candidates) == 1:
		return candidates[0]
	}
	return c.at(folder)
}

// identity names an object in findings.
func identity(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}
