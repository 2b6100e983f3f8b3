package scaffold

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Keys of the ConfigMap that carries trust material.
const (
	trustRootKey       = "trusted_root.json"
	trustTimestampsKey = "timestamp-authorities.pem"
	trustListsKey      = "revocation-lists.pem"
)

// maxTrustBytes is the API server's limit for a ConfigMap, less the names.
const maxTrustBytes = 1<<20 - 4<<10

// Trust is trust material to carry to a site without a network. Empty fields are omitted.
type Trust struct {
	// Namespace and Name identify the ConfigMap; the names of the ClusterTrustStores are, or
	// begin with, Name.
	Namespace, Name string
	// Source describes the source of the trust material in a comment.
	Source string
	// Root is a trusted_root.json, and Roles the annotation about the TUF metadata that
	// it was verified with.
	Root  []byte
	Roles string
	// TimestampAuthorities and RevocationLists are PEM text.
	TimestampAuthorities, RevocationLists []byte
	// ConfigMapOnly omits the ClusterTrustStores, for users whose resources reference the
	// ConfigMap.
	ConfigMapOnly bool
	// Ends are lines of the comment, such as "2027-06-01T00:00:00Z TUF role root".
	Ends []string
}

// Manifest returns the ConfigMap and the ClusterTrustStores that use it, as YAML. The same
// material always gives the same text, so Git only shows changes.
func (t Trust) Manifest() ([]byte, error) {
	data, stores := object{}, []object{}
	add := func(key string, content []byte, kind v1beta1.TrustStoreType, suffix string) {
		if len(content) == 0 {
			return
		}
		data[key] = string(content)
		stores = append(stores,
			object{"apiVersion": v1beta1.GroupVersion.String(), "kind": "Cluster" + v1beta1.KindTrustStore, "metadata": named("", t.Name+suffix),
				"spec": object{"type": string(kind), "source": object{"configMapKeyRef": object{"name": t.Name, "key": key}}}})
	}
	add(trustRootKey, t.Root, v1beta1.TrustStoreTypeSigstoreRoot, "")
	add(trustTimestampsKey, t.TimestampAuthorities, v1beta1.TrustStoreTypeTimestampAuthorities, "-timestamps")
	add(trustListsKey, t.RevocationLists, v1beta1.TrustStoreTypeRevocationLists, "-revocation-lists")
	if total := len(t.Root) + len(t.TimestampAuthorities) + len(t.RevocationLists); total > maxTrustBytes {
		return nil, fmt.Errorf("the trust material has %d bytes, and a ConfigMap holds %d: export the revocation lists under another --name",
			total, maxTrustBytes)
	}
	metadata := named(t.Namespace, t.Name)
	if t.Roles != "" {
		metadata["annotations"] = object{v1beta1.AnnotationTUFRoles: t.Roles}
	}
	if t.ConfigMapOnly {
		stores = nil
	}
	documents, err := onboard.YAML(append([]object{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}},
		stores...)...)
	if err != nil {
		return nil, fmt.Errorf("write trust material: %w", err)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Written by landwaiter trust export from %s. Export again before the first end:\n",
		strings.ReplaceAll(t.Source, "\n", " "))
	for _, end := range t.Ends {
		fmt.Fprintf(&text, "# %s\n", strings.ReplaceAll(end, "\n", " "))
	}
	text.Write(documents)
	return text.Bytes(), nil
}
