package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// progressEvery is the pause between two lines about the progress of long work.
const progressEvery = 5 * time.Second

// previewFlags are the flags of preview.
type previewFlags struct {
	service serviceFlags
	deleted []string
	// allNamespaces selects all namespaces; all also prints unchanged images.
	allNamespaces bool
	all           bool
	send          bool
}

func newPreview(by person) *cobra.Command {
	flags := previewFlags{service: serviceFlags{by: by}}
	cmd := &cobra.Command{
		Use:   "preview {-f NEW.yaml | --delete KIND/NAME}... [-n NS | -A]",
		Short: "Show how a change of resources would affect running images",
		Long: `Preview verifies the images of running pods and of workloads twice: with the cluster's current
resources, and as if you had applied NEW.yaml and removed the objects of --delete. It prints each
image whose verdict would change, with the reason and the fix, each image that an exception in
NEW.yaml is for, each rule that would no longer judge an image, and the totals of each namespace.
It changes nothing.

Preview reads the cluster with your permissions. If you cannot read everything that decides about
an image, the image is UNKNOWN; all other rows are exact. Standard error first names the roles that
you lack; docs/howto/preview.md lists the roles to bind.

NEW.yaml can contain all kinds of landwaiter.dev, and the Namespaces, Secrets, ConfigMaps and
ServiceAccounts that they need. An object replaces the cluster's whole object, and gets the
namespace of -n if it has none. An object that an API server would refuse is an error.

Your machine contacts the registries. Some flags of the server change verdicts: repeat these flags
with --serve-flag. If you can read the server's Deployment, preview reads the flags for exceptions
and break-glass there. It never uses your machine's cloud identity, "docker login" or Vault token.
Without --send-secrets, the change cannot send a Secret to another server.

Cluster-scoped objects can affect every namespace: use -A. If -n is a Tenant's home namespace,
preview also covers the Tenant's other namespaces.

Exit codes (64 and 69: see landwaiter --help):
  0  no running image would be newly denied, and nothing is unknown
  1  a running image would be newly denied
  2  something is unknown, and no image is known to be newly denied`,
		Example: `  kubectl apply --dry-run=server -o yaml -f stricter.yaml | landwaiter preview -f - -A
  landwaiter preview -f new-key.yaml -n team-a --all
  landwaiter preview --delete clusterverificationpolicy/default -A -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			printed, err := flags.run(cmd)
			if err == nil {
				err = by.output.print(cmd, printed)
			}
			if err != nil {
				return err
			}
			return printed.exit()
		},
	}
	flags.service.registerServer(cmd)
	registerAll(cmd, &flags.allNamespaces)
	cmd.Flags().StringArrayVarP(&flags.service.files, "filename", "f", nil,
		"file or directory with the changed objects, or - for standard input (repeatable)")
	cmd.Flags().StringArrayVar(&flags.deleted, "delete", nil, "KIND/NAME or KIND/NAMESPACE/NAME of an object to remove (repeatable)")
	cmd.Flags().BoolVar(&flags.all, "all", false, "also print images with an unchanged verdict")
	cmd.Flags().BoolVar(&flags.send, "send-secrets", false, "allow the change to send Secrets of the cluster to servers that do not "+
		"receive them now")
	uses(cmd, 10*time.Minute, flagOutput, flagAccount)
	return cmd
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// run judges running images.
func (f *previewFlags) run(cmd *cobra.Command) (printedPreview, error) {
	config, namespace, err := f.service.by.scope(f.allNamespaces)
	if err != nil {
		return printedPreview{}, err
	}
	_, own, err := f.service.by.config()
	if err != nil {
		return printedPreview{}, err
	}
	if namespace != verify.Cluster {
		own = string(namespace)
	}
	change, err := f.change(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), verify.Namespace(own)) // as kubectl apply does it
	if err != nil {
		return printedPreview{}, err
	}
	if err := f.service.parseServed(); err != nil {
		return printedPreview{}, err
	}
	if _, err := f.service.Complete(); err != nil { // before anything is read
		return printedPreview{}, err
	}
	ctx, cancel, failed := bounded(cmd.Context(), config, f.service.by.within(cmd))
	defer cancel()
	person, err := live.New(config, schema.Embedded())
	if err != nil {
		return printedPreview{}, program.Failed(err)
	}
	l := &look{previewFlags: f, stderr: cmd.ErrOrStderr(), progress: cmd.ErrOrStderr(), words: flagWords(), person: person,
		change: change, failed: failed}
	if err := l.all(ctx, namespace); err != nil {
		return printedPreview{}, err
	}
	return printablePreview(l.rows, l.missing, f.all), nil
}

// all previews a namespace and those that it governs, or with [verify.Cluster] every namespace.
func (l *look) all(ctx context.Context, namespace verify.Namespace) error {
	scope := live.Scope{Namespaces: []verify.Namespace{namespace}, All: namespace == verify.Cluster}
	if err := l.at(ctx, scope); err != nil {
		return err
	}
	if len(l.before.Missing) > 0 {
		return noNamespace(l.before.Missing[0])
	}
	if !scope.All {
		if err := l.governed(ctx, namespace); err != nil {
			return err
		}
	}
	l.warn(scope)
	return nil
}

// scopeWords say how a person selects other namespaces: by flags, or on the page.
type scopeWords struct {
	whole string                        // at all
	one   func(namespace string) string // at one
}

// flagWords are the words of the command.
func flagWords() scopeWords {
	return scopeWords{"use -A for the whole cluster", func(namespace string) string { return "use -n " + namespace + " or -A" }}
}

// look collects the effect of a change on running images.
type look struct {
	*previewFlags
	stderr   io.Writer
	progress io.Writer // reports the progress of long work
	words    scopeWords
	person   *live.Person
	change   live.Change
	failed   func(error) error

	before, after live.State // of the last look
	looked        []verify.Namespace
	rows          []live.Row
	missing       []live.Right
	problems      []resource.Problem
	told          []string // the objects that the person cannot read
}

// at previews the namespaces of scope. It judges nothing if one does not exist.
func (l *look) at(ctx context.Context, scope live.Scope) (err error) {
	server, err := l.service.observe(ctx, l.person)
	if err != nil {
		return l.failed(err)
	}
	scope.ClusterResourceNamespace = l.service.clusterResources(server)
	if l.before, l.after, err = l.person.Rehearse(ctx, scope, l.change); err != nil {
		return l.failed(err)
	}
	if len(l.before.Missing) > 0 {
		return nil
	}
	if err := l.service.asServer(ctx, l.person, server, &l.before, &l.after); err != nil {
		return l.failed(err)
	}
	options, err := l.service.Complete()
	if err != nil {
		return err
	}
	if err := absent(l.before, l.change.Delete); err != nil {
		return err
	}
	uses, missing, err := l.person.Running(ctx, scope)
	if err != nil {
		return l.failed(err)
	}
	unasked, err := readUnasked(ctx, l.person.Client(), l.after)
	if err != nil {
		return l.failed(err)
	}
	uses = unasked.leaveOut(uses, l.stderr)
	rows, problems, err := judge(ctx, l, options, l.change.Named(uses, l.after))
	if err != nil {
		return err
	}
	unasked.admitted(rows, l.stderr)
	for _, p := range ofNamespaces(l.after, problems) {
		if !slices.Contains(l.problems, p) {
			l.problems = append(l.problems, p)
		}
	}
	l.looked, l.rows, l.missing = append(l.looked, l.before.Namespaces...), append(l.rows, rows...), append(l.missing, missing...)
	return nil
}

// governed previews, one at a time, the other namespaces to which the rules of the home namespace
// apply.
func (l *look) governed(ctx context.Context, home verify.Namespace) error {
	others, missing, err := l.person.Governed(ctx, home, l.before, l.after)
	if err != nil {
		return l.failed(err)
	}
	l.missing = append(l.missing, missing...)
	if len(l.rows) == 0 { // it is unknown whether it is a home namespace
		l.missing = append(l.missing,
			slices.DeleteFunc(slices.Clone(l.before.Rights), func(r live.Right) bool { return r.Resource.Resource != "tenants" })...)
	}
	if len(others) > 0 {
		program.Say(l.stderr, "note: %s is the home namespace of a Tenant; its rules also apply in %s", home,
			strings.Join(mapped(others, func(n verify.Namespace) string { return string(n) }), ", "))
	}
	for _, other := range others {
		if err := l.at(ctx, live.Scope{Namespaces: []verify.Namespace{other}}); err != nil {
			return err
		}
	}
	return nil
}

// change reads the previewed objects.
func (f *previewFlags) change(ctx context.Context, stdin io.Reader, stderr io.Writer, namespace verify.Namespace) (live.Change, error) {
	if len(f.service.files)+len(f.deleted) == 0 {
		return live.Change{}, errors.New("no change is given: use -f FILE with the changed objects, or --delete KIND/NAME")
	}
	change := live.Change{At: time.Now()}
	if len(f.service.files) > 0 {
		objects, others, err := lint.ReadSound(ctx, string(namespace), f.service.files, stdin)
		if err != nil {
			return live.Change{}, err
		}
		if len(f.deleted) == 0 && others == 0 && empty(objects) {
			if slices.Contains(f.service.files, configdir.Standard) {
				return live.Change{}, errors.New(configdir.EmptyInput)
			}
			return live.Change{}, fmt.Errorf("the input is empty: %s has no object", strings.Join(f.service.files, ", "))
		}
		if len(f.deleted) == 0 && empty(objects) {
			return live.Change{},
				fmt.Errorf("no object is of a kind that verdicts depend on (objects of other kinds: %d); to verify manifests, use landwaiter "+
					"verify -f FILE; what a constraint would deny is in landwaiter status -A", others)
		}
		if others > 0 {
			program.Say(stderr, "note: objects of kinds that Landwaiter does not use were ignored: %d", others)
		}
		change.Objects = objects
	}
	change.SendSecrets = f.send
	for _, text := range f.deleted {
		ref, err := live.ParseDeletion(text, namespace)
		if err != nil {
			return live.Change{}, fmt.Errorf("--delete: %w", err)
		}
		change.Delete = append(change.Delete, ref)
	}
	return change, nil
}

// empty reports whether there is nothing on which a verdict could depend.
func empty(o resource.Objects) bool {
	return len(o.Resources)+len(o.Namespaces)+len(o.Secrets)+len(o.ConfigMaps)+len(o.ServiceAccounts)+len(o.Broken) == 0
}

// absent refuses to delete a resource that does not exist, if everything could be read. A
// Secret or the like is only read if a resource names it.
func absent(before live.State, deleted []policy.ObjectRef) error {
	there := map[policy.ObjectRef]bool{}
	for _, object := range before.Objects.Resources {
		there[resource.RefOf(object)] = true
	}
	for _, broken := range before.Objects.Broken {
		there[broken.Source] = true
	}
	for _, ref := range deleted {
		level := policy.ObjectRef{Kind: ref.Kind, Namespace: ref.Namespace, Name: ""}
		unread := slices.ContainsFunc(before.Objects.Unreadable, func(u resource.Unreadable) bool { return u.Source == level })
		looked := ref.Namespace == "" || slices.Contains(before.Namespaces, verify.Namespace(ref.Namespace))
		if _, ok := v1beta1.KindNamed(ref.Kind); ok && looked && !unread && !there[ref] {
			return &program.Exit{Code: program.ExitDenied, Err: fmt.Errorf("--delete: %s does not exist", ref)}
		}
	}
	return nil
}

// judge decides about images with the current and the previewed resources, and returns the
// new problems.
func judge(ctx context.Context, l *look, options service.Options, uses []live.Use) ([]live.Row, []resource.Problem, error) {
	s, old, err := service.Open(ctx, l.before.Objects, options)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	next, problems := s.Rehearse(ctx, l.after.Objects)
	// The server would answer by the rules of now, so this does not name the command that asks it.
	for _, line := range mapped(slices.Concat(l.before.Unreadable(s.Set().Snapshot()), l.after.Unreadable(next.Set().Snapshot())),
		program.Plain) {
		if !slices.Contains(l.told, line) {
			l.told = append(l.told, line)
			program.Say(l.stderr, "%s", line)
		}
	}
	problems = slices.DeleteFunc(problems, func(p resource.Problem) bool { return slices.Contains(old, p) })
	done, told := 0, time.Now()
	rows := live.Preview(ctx, uses, l.before.Judging(s), l.after.Judging(next), func() {
		if done++; time.Since(told) > progressEvery {
			told = time.Now()
			program.Say(l.progress, "verified %d of %d images", done, len(uses))
		}
	})
	live.Lose(rows, s.Set().Snapshot(), next.Set().Snapshot())
	return rows, problems, nil
}

// warn prints notes about the change.
func (l *look) warn(scope live.Scope) {
	for _, p := range l.problems {
		program.Say(l.stderr, "warning: with the change, %s: %s: %s", p.Source, p.Reason, program.Plain(p.Message))
	}
	for _, object := range l.change.Objects.Resources {
		for _, p := range conditions.Review(object) { // as check FILE does
			program.Say(l.stderr, "%s: %s: %s: %s", resource.ReviewSeverity(p.Source, p.Reason), p.Source, p.Reason, program.Plain(p.Message))
		}
	}
	for _, line := range l.change.Unmatched(mapped(l.rows, func(r live.Row) live.Use { return r.Use }), l.before, l.after) {
		program.Say(l.stderr, "note: %s", line)
	}
	if scope.All {
		for _, line := range l.change.Nowhere(l.after) {
			program.Say(l.stderr, "note: %s", line)
		}
		return
	}
	if l.change.ClusterScoped() {
		program.Say(l.stderr, "note: the change has cluster-scoped resources, but preview only covered namespace %s; %s",
			scope.Namespaces[0], l.words.whole)
	}
	touched := l.change.Objects.InNamespaces()
	for _, ref := range l.change.Delete {
		if ref.Namespace != "" && !slices.Contains(touched, ref.Namespace) {
			touched = append(touched, ref.Namespace)
		}
	}
	for _, name := range touched {
		if !slices.Contains(l.looked, verify.Namespace(name)) {
			program.Say(l.stderr, "note: the change has objects of namespace %s, where no image was verified; %s", name, l.words.one(name))
		}
	}
}
