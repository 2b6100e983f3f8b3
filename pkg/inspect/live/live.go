// Package live reads a cluster as one person: Landwaiter's resources, the Secrets and the
// like that they name, and the images of pods and workloads. It writes nothing, except that
// it asks the API server what Landwaiter's account may read, and uses no permissions but the
// person's. What the person may not read is [resource.Hidden]: it is neither missing nor
// broken, so what depends on it is Undecided and names the permission.
package live

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Person reads a cluster with one person's permissions. It is safe for concurrent use.
type Person struct {
	client client.Client
}

// New returns the cluster of config as the person of config sees it.
func New(config *rest.Config) (*Person, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	config.WarningHandler = rest.NoWarnings{}
	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	return &Person{client: made}, nil
}

// Client returns the client of the person, for reads that this package has no method for.
func (p *Person) Client() client.Reader { return p.client }
