package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// rules judge images: resources in files, or those of a cluster as far as a person may read
// them.
type rules struct {
	*service.Service

	state *live.State // nil for files
}

// verify decides about an image in a namespace.
func (r rules) verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	if r.state != nil {
		return r.state.Judging(r.Service)(ctx, live.Use{Namespace: namespace}, ref)
	}
	return r.Verify(ctx, namespace, ref)
}

// verifyAll decides about images in parallel. Invalid references are denied, as by the
// server.
func (r rules) verifyAll(ctx context.Context, questions []live.Use) []verify.Result {
	results := make([]verify.Result, len(questions))
	var group errgroup.Group
	group.SetLimit(maxParallelImages)
	for i, q := range questions {
		group.Go(func() error {
			if ref, err := image.Parse(q.Image); err != nil {
				results[i] = verify.Unanswered(q.Namespace, image.Reference{}, verify.Permanent("", err))
			} else {
				results[i] = r.verify(ctx, q.Namespace, ref)
			}
			return nil
		})
	}
	_ = group.Wait() // no task returns an error
	return results
}

// unreadable lists, before any answer, deciding objects that a person cannot read, and how to get the server's
// answer.
func unreadable(state live.State, snapshot *resolve.Snapshot, problems []resource.Problem) []string {
	lines := mapped(state.Unreadable(snapshot), program.Plain)
	if len(lines) == 0 && !slices.ContainsFunc(problems, func(p resource.Problem) bool { return p.Reason == policy.ReasonUnreadable }) {
		return nil
	}
	command := live.AskServerSomewhere()
	if len(state.Namespaces) == 1 && state.Namespaces[0] != verify.Cluster {
		command = state.AskServer(state.Namespaces[0], "")
	}
	if command == "" { // no pod may run there
		return lines
	}
	return append(lines, "with the role edit in the namespace, you can also ask the server, which creates nothing: "+command)
}

// registerRules declares the flags of a command that judges images by files or by a cluster, in
// one namespace.
func (f *serviceFlags) registerRules(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.configDir, "config-dir", "", "directory with resources as YAML or JSON files (empty: read the cluster)")
	f.registerServer(cmd)
	cmd.Flags().BoolVar(&f.strict, "strict", false, "verify nothing if a resource has a problem, or if no file contains an object "+
		"in the namespace")
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "file or directory with Pods and workloads that contain the images, or - "+
		"for standard input (repeatable)")
}

// checkImages refuses a command line without images, or with two sources of images.
func (f *serviceFlags) checkImages(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && len(f.files) > 0:
		return errors.New("images are given as arguments or with --filename, not both")
	case len(f.files) > 0:
		return nil
	}
	for _, arg := range args {
		if _, err := image.Parse(arg); err != nil {
			return err
		}
	}
	return someImages(cmd, args)
}

// questions returns the images of the command line, or those of the files of -f.
func (f *serviceFlags) questions(cmd *cobra.Command, args []string, namespace verify.Namespace) ([]live.Use, error) {
	if len(args) > 0 {
		return mapped(args, func(arg string) live.Use { return live.Use{Namespace: namespace, Image: arg} }), nil
	}
	uses, others, err := live.FileUses(cmd.Context(), f.files, cmd.InOrStdin(), namespace)
	if err != nil {
		return nil, err
	}
	if others > 0 {
		program.Say(cmd.ErrOrStderr(), "note: objects of kinds without a pod were ignored: %d", others)
	}
	return uses, nil
}

// cluster returns the configuration of the cluster, nil for files, and the namespace of
// --namespace, or that of the cluster's context.
func (f *serviceFlags) cluster() (*rest.Config, verify.Namespace, error) {
	if f.configDir != "" {
		namespace, err := parseNamespaceFlag(*f.by.Namespace)
		return nil, namespace, err
	}
	config, namespace, err := f.by.scope(false)
	if f.anonymous && errors.Is(err, errNoCluster) {
		namespace, err := parseNamespaceFlag(*f.by.Namespace)
		return nil, namespace, err
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w; or use --config-dir DIR for resources in files", err)
	}
	return config, namespace, nil
}

// ask returns the images of the command line, and the rules that judge them: the resources in
// --config-dir, or those of the cluster. It prints problems to standard error.
func (f *serviceFlags) ask(cmd *cobra.Command, args []string, timeout time.Duration) (rules, []live.Use, error) {
	if err := f.checkImages(cmd, args); err != nil {
		return rules{}, nil, err
	}
	if cmd.Flags().Changed("config-dir") && f.configDir == "" {
		return rules{}, nil, errors.New("--config-dir is empty, it must name a directory")
	}
	if err := f.parseServed(); err != nil {
		return rules{}, nil, err
	}
	config, namespace, err := f.cluster()
	if err != nil {
		return rules{}, nil, err
	}
	questions, err := f.questions(cmd, args, namespace)
	if err != nil {
		return rules{}, nil, err
	}
	if config == nil {
		s, err := f.load(cmd, namespace)
		return rules{Service: s}, questions, err
	}
	r, err := f.clusterRules(cmd, config, questions, timeout)
	return r, questions, err
}

// clusterRules returns the rules of a cluster for questions, as far as the person may read them.
func (f *serviceFlags) clusterRules(cmd *cobra.Command, config *rest.Config, questions []live.Use, timeout time.Duration) (rules, error) {
	ctx, cancel, failed := bounded(cmd.Context(), config, timeout)
	defer cancel()
	person, err := live.New(config, schema.Embedded())
	if err != nil {
		return rules{}, program.Failed(err)
	}
	state, err := f.personState(ctx, cmd.ErrOrStderr(), person, questions, failed)
	if err != nil {
		return rules{}, err
	}
	return f.openRules(cmd.Context(), cmd.ErrOrStderr(), state)
}

// personState reads the rules for questions, as far as person may read them. Errors of
// reading have the exit code of Failed.
func (f *serviceFlags) personState(ctx context.Context, stderr io.Writer, person *live.Person, questions []live.Use,
	failed func(error) error) (live.State, error) {
	server, err := f.observe(ctx, person)
	if err != nil {
		return live.State{}, failed(err)
	}
	state, err := person.Read(ctx,
		live.Scope{Namespaces: mapped(questions, func(q live.Use) verify.Namespace { return q.Namespace }),
			ClusterResourceNamespace: f.clusterResources(server)})
	if err != nil {
		return live.State{}, failed(err)
	}
	if err := f.asServer(ctx, person, server, &state); err != nil {
		return live.State{}, failed(err)
	}
	if len(state.Missing) > 0 && len(f.files) == 0 { // files may contain images for a namespace that they create
		return live.State{}, noNamespace(state.Missing[0])
	}
	if f.anonymous { // a digest is no verdict
		return state, nil
	}
	unasked, err := readUnasked(ctx, person.Client(), state)
	if err != nil {
		return live.State{}, failed(err)
	}
	unasked.note(questions, stderr)
	return state, nil
}

// openRules returns the rules of a state, until ctx ends.
func (f *serviceFlags) openRules(ctx context.Context, stderr io.Writer, state live.State) (rules, error) {
	options, err := f.Complete()
	if err != nil {
		return rules{}, err
	}
	s, problems, err := service.Open(ctx, state.Objects, options)
	if err != nil {
		return rules{}, err
	}
	if err := f.sayProblems(stderr, state, problems); err != nil {
		s.Close()
		return rules{}, err
	}
	for _, line := range unreadable(state, s.Set().Snapshot(), problems) {
		program.Say(stderr, "%s", line)
	}
	return rules{Service: s, state: &state}, nil
}

// noNamespace says that the cluster has no namespace with a name.
func noNamespace(name verify.Namespace) error {
	return &program.Exit{Code: program.ExitDenied, Err: fmt.Errorf("namespace %s does not exist", name)}
}

// sayProblems prints the problems of a cluster's resources, which are also in conditions, and
// namespaces that do not exist.
func (f *serviceFlags) sayProblems(stderr io.Writer, state live.State, problems []resource.Problem) error {
	said := "warning"
	if f.strict {
		said = "error"
	}
	problems = ofNamespaces(state, problems)
	for _, p := range problems {
		program.Say(stderr, "%s: %s: %s: %s", said, p.Source, p.Reason, program.Plain(p.Message))
	}
	for _, namespace := range state.Missing {
		program.Say(stderr, "%s: namespace %s does not exist, so only cluster resources apply", said, namespace)
	}
	if f.strict && len(problems)+len(state.Missing) > 0 {
		return &program.Exit{Code: program.ExitUndecided, Err: errors.New("--strict: no image was verified, because of the errors above")}
	}
	return nil
}

// ofNamespaces omits problems about missing home namespaces of other Tenants: only the Tenants of
// the namespaces of state were read.
func ofNamespaces(state live.State, problems []resource.Problem) []resource.Problem {
	read := map[string]bool{}
	for i := range state.Objects.Namespaces {
		read[state.Objects.Namespaces[i].Name] = true
	}
	var tenants []*v1beta1.Tenant
	for _, object := range state.Objects.Resources {
		if tenant, ok := object.(*v1beta1.Tenant); ok {
			tenants = append(tenants, tenant)
		}
	}
	other := map[string]bool{}
	for _, tenant := range tenants {
		other[tenant.Name] = !read[tenant.Spec.HomeNamespace]
	}
	all := resource.NewTenants(tenants).Labelled(resource.LabelsOf(state.Objects.Namespaces))
	for _, namespace := range state.Namespaces {
		if holder := all.Holder(string(namespace)); holder != nil {
			delete(other, holder.Name)
		}
	}
	return slices.DeleteFunc(slices.Clone(problems), func(p resource.Problem) bool {
		return p.Source.Kind == v1beta1.KindTenant && p.Reason == policy.ReasonNotFound && other[p.Source.Name]
	})
}

// unreachable gives an error of reading a cluster its exit code: after a missing permission
// everything is undecided, otherwise the API server failed.
func unreachable(err error) error {
	var missing live.MissingError
	if errors.As(err, &missing) {
		if missing.Right.Resource.Resource == "namespaces" {
			err = fmt.Errorf("%w; or use --namespace NAME to look at one", err)
		}
		return &program.Exit{Code: program.ExitUndecided, Err: err}
	}
	return program.Failed(err)
}

// used names the workloads with an image.
func used(u live.Use) string {
	text := strings.Join(mapped(u.Owners, program.Plain), ", ")
	switch {
	case len(u.Owners) == live.MaxOwners:
		text += ", …"
	case text == "" && u.Pods > 0:
		text = amount(u.Pods, "pod")
	}
	return cmp.Or(text, "-")
}
