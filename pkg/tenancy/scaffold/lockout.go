package scaffold

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// fluxImage is one of flux bootstrap's images, for trees without its files.
const fluxImage = "ghcr.io/fluxcd/kustomize-controller"

// MayAllow returns, for the resources of landwaiter.dev and the namespaces that one cluster
// has, given as YAML, whether some evidence could get an image allowed in a namespace. An
// empty image stands for any image, and an empty namespace for any namespace.
type MayAllow func(ctx context.Context, text string) (func(namespace, image string) bool, error)

// CheckLockout returns a [RefusedError] if the constraints of tree, once they are in dir, deny
// images that the platform needs: every image, or Flux's. It also returns one if the settings
// exempt namespaces, so that nobody verifies a team's images.
func (p Platform) CheckLockout(ctx context.Context, dir string, tree Tree, o WriteOptions, mayAllow MayAllow) error {
	if p.Enforcement != "deny" && !p.exemptsOthers() {
		return nil
	}
	c, err := newChecker(CheckOptions{MayAllow: mayAllow})
	if err != nil {
		return err
	}
	if err := c.load(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.put(dir, tree, o.Force); err != nil {
		return err
	}
	c.settings = &p
	c.inspect()
	for _, from := range c.clusters() {
		if err := ctx.Err(); err != nil {
			return err
		}
		all := c.begin(from)
		clear(c.findings) // a check reports all other errors
		why := "with the enforcement deny, pods that the platform needs would not start any more"
		if p.Enforcement == "deny" {
			c.lockout(ctx, all)
		}
		if len(c.findings) == 0 && p.exemptsOthers() {
			why = "nobody would verify images of teams"
			c.unverified(all, all.tenants(), resource.NewTenants(all.tenants()).Labelled(all.labels()))
		}
		if len(c.findings) > 0 {
			text := "nothing was written: " + why
			for _, f := range c.sorted() {
				text += "\n" + f.File + ": " + f.Message
			}
			return &RefusedError{text}
		}
	}
	return nil
}

// put adds the files of a tree to those in memory, as [Write] would.
func (c *checker) put(dir string, tree Tree, force bool) error {
	root, done, err := openTree(dir)
	if err != nil {
		return err
	}
	defer done()
	for _, file := range tree.Files {
		result, _, err := compare(root, tree, file)
		if err != nil {
			return err
		}
		if result == Created || result == Changed || result == Edited && force {
			c.keep(file.Path, file.Stamped(tree.By))
		}
	}
	return nil
}

// needed is an image of pods in the tree, or any if Image is empty.
type needed struct{ namespace, image, by string }

// lockout finds constraints that deny images that the platform needs. It ignores images that
// are in no file, except Flux's.
func (c *checker) lockout(ctx context.Context, all *closure) {
	constraints := slices.DeleteFunc(slices.Clone(all.objects), func(o applied) bool { return !deniesImages(o.Unstructured) })
	if len(constraints) == 0 || c.options.MayAllow == nil {
		return
	}
	mayAllow, err := c.mayAllow(ctx, all)
	if err != nil {
		c.find("LockoutUnknown", c.at(all.root), "whether images are allowed cannot be told: %v", err)
		return
	}
	images := c.needed(all)
	for _, constraint := range constraints {
		at, who := c.of(constraint.folder, constraint.Unstructured), identity(constraint.Unstructured)
		if list, _, _ := unstructured.NestedSlice(constraint.Object, "spec", "match", "namespaces"); len(list) == 0 && !mayAllow("", "") {
			c.find("EveryImageDenied", at, "%s denies every image, because no policy and no Verifier in the tree allows any image: put a "+
				"ClusterVerifier or a ClusterVerificationPolicy into infrastructure/policies/own, or run platform init with --set enforcement=dryrun "+
				"until there is one", who)
			continue
		}
		for _, n := range images {
			if !matches(constraint.Unstructured, n) || mayAllow(n.namespace, n.image) {
				continue
			}
			what := "every image"
			if n.image != "" {
				what = "image " + n.image
			}
			c.find("PlatformImageDenied", at, "%s denies %s of %s, because no rule could allow it in namespace %s: put a rule for it into "+
				"infrastructure/policies/own, or add the namespace to exemptNamespaces in %s and run platform init", who, what, n.by,
				n.namespace, SettingsFile)
		}
	}
}

// mayAllow evaluates an image with all resources of a cluster. For any image it omits the rules
// for Flux's images, which every tree has and which allow nothing else.
func (c *checker) mayAllow(ctx context.Context, all *closure) (func(namespace, image string) bool, error) {
	var asked [2]func(namespace, image string) bool
	for i, leftOut := range []func(*unstructured.Unstructured) bool{nil, ofFluxImages} {
		text, err := all.text(leftOut)
		if err != nil {
			return nil, err
		}
		if asked[i], err = c.options.MayAllow(ctx, text); err != nil {
			return nil, err
		}
	}
	return func(namespace, image string) bool {
		if image == "" {
			return asked[1](namespace, "")
		}
		return asked[0](namespace, image)
	}, nil
}

// ofFluxImages reports whether an object is one of the set for Flux's images that can allow an image.
func ofFluxImages(o *unstructured.Unstructured) bool {
	return o.GetName() == "flux-release" || o.GetName() == fluxImagesSet
}

// text returns Landwaiter's resources as YAML, and namespaces: one may be the home namespace of a
// Tenant. leftOut, unless it is nil, selects resources to omit.
func (all *closure) text(leftOut func(*unstructured.Unstructured) bool) (string, error) {
	var objects []object
	for _, o := range all.objects {
		if leftOut != nil && isResource(o.Unstructured) && leftOut(o.Unstructured) {
			continue
		}
		if isResource(o.Unstructured) || o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" {
			objects = append(objects, o.Object)
		}
	}
	text, err := onboard.YAML(objects...)
	return string(text), err
}

// needed returns the images of the workloads in the tree, those of Flux, and one of any name
// for each chart of the platform, whose images are not in the tree.
func (c *checker) needed(all *closure) []needed {
	var images []needed
	flux := false
	for _, o := range all.objects {
		if isFlux(o.Unstructured, "HelmRelease") && o.GetNamespace() == fluxNamespace {
			if namespace, _, _ := unstructured.NestedString(o.Object, "spec", "targetNamespace"); namespace != "" {
				images = append(images, needed{namespace, "", identity(o.Unstructured)})
			}
		}
		if !c.scheme.Recognizes(o.GroupVersionKind()) || o.GetNamespace() == "" {
			continue
		}
		typed, err := c.scheme.New(o.GroupVersionKind())
		if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed) != nil {
			continue // a separate finding
		}
		if of, ok := workload.Of(typed); ok {
			flux = flux || o.GetNamespace() == fluxNamespace
			for i := range workload.Images(of.Pod) {
				images = append(images, needed{o.GetNamespace(), i.Image, identity(o.Unstructured)})
			}
		}
	}
	if !flux {
		images = append(images, needed{fluxNamespace, fluxImage, "Flux"})
	}
	return append(images, unseen(all, images)...)
}

// unseen returns one image of any name for each of the platform's namespaces in the tree whose
// pods are not in the tree, such as for a chart that an object of another namespace installs.
func unseen(all *closure, seen []needed) (images []needed) {
	for _, o := range all.objects {
		if o.GetKind() != "Namespace" || o.GroupVersionKind().Group != "" || o.GetLabels()[v1beta1.LabelTenant] != "" ||
			slices.ContainsFunc(seen, func(n needed) bool { return n.namespace == o.GetName() }) {
			continue
		}
		images = append(images, needed{o.GetName(), "", identity(o.Unstructured)})
	}
	return images
}

// deniesImages reports whether an object is a constraint that denies pods by their images. It
// omits a constraint that selects by labels: the tree does not show the selected objects.
func deniesImages(o *unstructured.Unstructured) bool {
	if o.GroupVersionKind().Group != constraintGroup || o.GetKind() != imagesKind {
		return false
	}
	match, _, _ := unstructured.NestedMap(o.Object, "spec", "match")
	for _, field := range []string{"namespaceSelector", "labelSelector", "name"} {
		if _, ok := match[field]; ok {
			return false
		}
	}
	action, _, _ := unstructured.NestedString(o.Object, "spec", "enforcementAction")
	if action == "scoped" {
		scoped, _, _ := unstructured.NestedSlice(o.Object, "spec", "scopedEnforcementActions")
		return slices.ContainsFunc(scoped, func(entry any) bool {
			m, _ := entry.(map[string]any)
			return m["action"] == "deny"
		})
	}
	return action == "" || action == "deny"
}

// matches reports whether a constraint covers an image in a namespace.
func matches(c *unstructured.Unstructured, n needed) bool {
	list := func(fields ...string) []string {
		found, _, _ := unstructured.NestedStringSlice(c.Object, fields...)
		return found
	}
	only := list("spec", "match", "namespaces")
	switch {
	case len(only) > 0 && !slices.ContainsFunc(only, func(pattern string) bool { return constraint.MatchesName(pattern, n.namespace) }):
		return false
	case slices.ContainsFunc(list("spec", "match", "excludedNamespaces"), func(pattern string) bool {
		return constraint.MatchesName(pattern, n.namespace)
	}):
		return false
	}
	return !constraint.LeftOut(constraint.ExemptImages(c), n.image)
}
