package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// FileUses returns the images of the Pods and workloads in files, directories or, for
// [configdir.Standard], standard input, and the number of objects of other kinds. Objects
// without a namespace are in the given one. It fails for invalid text.
func FileUses(ctx context.Context, paths []string, stdin io.Reader, namespace verify.Namespace) ([]Use, int, error) {
	files, err := configdir.Read(ctx, string(namespace), paths, stdin)
	if err != nil {
		return nil, 0, err
	}
	decoder := clientgoscheme.Codecs.UniversalDeserializer()
	u, others := &uses{of: map[useKey]*Use{}}, 0
	for _, d := range files.Declarations {
		switch {
		case d.Err != nil && !d.Ignored && d.JSON == nil: // it may have items, as a list
			return nil, 0, fmt.Errorf("%s:%d: %w", d.File, d.Line, d.Err)
		case hasItems(d.JSON) || hasItems(d.Foreign):
			return nil, 0,
				fmt.Errorf("%s:%d: %s: for kubectl, an object with items is a list, but only apiVersion v1, kind List is supported: change "+
					"apiVersion and kind, or write each item as a document", d.File, d.Line, d.Source)
		case !d.Ignored:
			others++
			continue
		}
		object, _, err := decoder.Decode(d.Foreign, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			others++
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %s: %w", d.File, d.Line, d.Source, err)
		}
		of, ok := workload.Of(object)
		if !ok {
			others++
			continue
		}
		of.Meta.OwnerReferences = nil // in a file, owners do not matter
		forgetStatus(object)
		if of.Meta.Namespace != "" {
			if _, err := verify.ParseNamespace(of.Meta.Namespace); err != nil {
				return nil, 0, fmt.Errorf("%s:%d: %s: metadata.namespace: %w", d.File, d.Line, d.Source, err)
			}
		}
		if err := u.add(object, string(namespace)); err != nil {
			return nil, 0, err
		}
	}
	found := u.sorted()
	if len(files.Declarations) == 0 && slices.Contains(paths, configdir.Standard) {
		return nil, 0, errors.New(configdir.EmptyInput)
	}
	if len(found) == 0 {
		return nil, others,
			errors.New("no images: the files have no Pod, and no workload with one; objects of other kinds: " + fmt.Sprint(others))
	}
	return found, others, nil
}

// forgetStatus removes the status of objects that may have ended: an API server drops it when
// the object is created, so the containers of a manifest always run.
func forgetStatus(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		o.Status = corev1.PodStatus{}
	case *batchv1.Job:
		o.Status = batchv1.JobStatus{}
	}
}

// hasItems reports whether kubectl would apply the items of an object instead of the object
// itself, whatever its kind.
func hasItems(text []byte) bool {
	var object map[string]any
	if len(text) == 0 || utiljson.Unmarshal(text, &object) != nil {
		return false // unreadable content is refused elsewhere
	}
	_, ok := object["items"].([]any)
	return ok
}
