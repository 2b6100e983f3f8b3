package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
)

// ReadChange reads what a preview adds or replaces from files, directories or standard
// input, and how many objects of other kinds there are. Objects that need a namespace and
// name none are in the given one. It refuses what an API server would refuse by the
// CRDs of the resources.
func ReadChange(ctx context.Context, paths []string, stdin io.Reader, namespace verify.Namespace, now time.Time) (Change, int, error) {
	files, err := configdir.ReadIn(ctx, string(namespace), paths, stdin)
	if err != nil {
		return Change{}, 0, err
	}
	others := 0
	for _, d := range files.Declarations {
		switch {
		case d.Ignored:
			others++
		case d.Err != nil && d.JSON == nil:
			return Change{}, 0, fmt.Errorf("%s:%d: %w", d.File, d.Line, d.Err)
		}
	}
	findings, err := lint.Definitions(ctx, files.Declarations)
	if err != nil {
		return Change{}, 0, err
	}
	var wrong []error
	for _, f := range findings {
		wrong = append(wrong, fmt.Errorf("%s:%d: %s: %s: %s", f.File, f.Line, f.Resource, f.Field, f.Message))
	}
	for _, p := range files.Problems { // such as an object that is declared twice
		if !p.IsIgnored() && len(wrong) == 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s", p.Source, p.Message))
		}
	}
	if len(wrong) > 0 {
		return Change{}, 0, errors.Join(wrong...)
	}
	return Change{Objects: files.Objects, At: now}, others, nil
}

// ParseDeletion reads KIND/NAME or KIND/NAMESPACE/NAME of an object that a preview removes.
// A kind is written as in a manifest or, as kubectl takes it, in lower case or the plural.
func ParseDeletion(text string, namespace verify.Namespace) (policy.ObjectRef, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[len(parts)-1] == "" {
		return policy.ObjectRef{}, fmt.Errorf("%.200q is not KIND/NAME or KIND/NAMESPACE/NAME", text)
	}
	ref := policy.ObjectRef{Namespace: string(namespace), Name: parts[len(parts)-1]}
	if len(parts) == 3 {
		ref.Namespace = parts[1]
	}
	namespaced, known := true, false
	for _, name := range []string{"Secret", "ConfigMap", "ServiceAccount"} {
		if same(parts[0], name, strings.ToLower(name)+"s") {
			ref.Kind, known = name, true
		}
	}
	for _, kind := range v1beta1.Kinds() {
		if same(parts[0], kind.Name, kind.Plural) {
			ref.Kind, namespaced, known = kind.Name, kind.Namespaced, true
		}
	}
	switch {
	case !known:
		return policy.ObjectRef{}, fmt.Errorf("%.200q: %.80q is not a kind that decides about images", text, parts[0])
	case !namespaced && len(parts) == 3:
		return policy.ObjectRef{}, fmt.Errorf("%.200q: a %s belongs to no namespace; write %s/%s", text, ref.Kind, ref.Kind, ref.Name)
	case !namespaced:
		ref.Namespace = ""
	case ref.Namespace == "":
		return policy.ObjectRef{}, fmt.Errorf("%.200q: a %s belongs to a namespace; write %s/NAMESPACE/%s", text, ref.Kind, ref.Kind, ref.Name)
	}
	return ref, nil
}

func same(text, kind, plural string) bool {
	text, _, _ = strings.Cut(text, ".") // verifiers.landwaiter.dev
	return strings.EqualFold(text, kind) || strings.EqualFold(text, plural)
}
