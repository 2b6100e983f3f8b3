package live

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/pkg/workload"
)

// FileUses returns the images of the Pods and workloads in files, directories or, for
// [configdir.Standard], standard input, and how many objects of other kinds there are.
// Objects without a namespace are in the given one. It fails for text that cannot be read.
func FileUses(paths []string, stdin io.Reader, namespace verify.Namespace) ([]Use, int, error) {
	files, err := configdir.ReadIn(string(namespace), paths, stdin)
	if err != nil {
		return nil, 0, err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, 0, fmt.Errorf("register types: %w", err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	u, others := &uses{of: map[useKey]*Use{}}, 0
	for _, d := range files.Declarations {
		switch {
		case d.Err != nil && !d.Ignored && d.Source.Kind == "":
			return nil, 0, fmt.Errorf("%s:%d: %w", d.File, d.Line, d.Err)
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
		meta, _, ok := workload.Of(object)
		if !ok {
			others++
			continue
		}
		meta.OwnerReferences = nil // a file has what it has, whoever made it
		if meta.Namespace != "" {
			if _, err := verify.ParseNamespace(meta.Namespace); err != nil {
				return nil, 0, fmt.Errorf("%s:%d: %s: metadata.namespace: %w", d.File, d.Line, d.Source, err)
			}
		}
		if err := u.add(object, string(namespace)); err != nil {
			return nil, 0, err
		}
	}
	found := u.sorted()
	if len(found) == 0 {
		return nil, others, errors.New("no images: the files have no Pod, and no workload with one; objects of other kinds: " + fmt.Sprint(others))
	}
	return found, others, nil
}
