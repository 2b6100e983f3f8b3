package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/fetcher"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// trustedRootTarget is the file of a Sigstore TUF repository that holds all keys and
// certificates.
const trustedRootTarget = "trusted_root.json"

// fetchTUF fetches the trusted root from a TUF repository: Sigstore's public-good one by
// default. The content expires with the repository's root and targets, whose keys are kept
// offline. The snapshot and timestamp live for days and are renewed automatically: if they
// are not, fetching fails, and the value says so.
func (n network) fetchTUF(ctx context.Context, source Source) (Content, error) {
	copied, err := n.copyTUF(ctx, source)
	if err != nil {
		return Content{}, err
	}
	return Content{Bytes: copied.TrustedRoot, Roles: copied.Roles}, nil
}

// copyTUF reads a TUF repository over the network.
func (n network) copyTUF(ctx context.Context, source Source) (TUFCopy, error) {
	address := source.Address
	reach := egress.Private // an admin named the mirror
	if address == "" {
		address, reach = tuf.DefaultMirror, egress.Public
	}
	mirror, err := url.Parse(address)
	if err != nil {
		return TUFCopy{}, problem("the address of the mirror is malformed")
	}
	client, err := n.client(ctx, egress.Options{Hosts: []string{mirror.Host}, Reach: reach, Roots: []byte(source.Authority)})
	if err != nil {
		return TUFCopy{}, err
	}
	defer client.Close()
	download := fetcher.NewDefaultFetcher()
	download.SetHTTPClient(client.HTTP())
	return readTUF(ctx, address, source.Root, download)
}

// readTUF reads and verifies a TUF repository (The Update Framework specification v1.0,
// section 5). It writes nothing to disk. The initial root is Sigstore's if it is empty.
func readTUF(ctx context.Context, address, root string, from fetcher.Fetcher) (TUFCopy, error) {
	initial := []byte(root)
	if root == "" {
		initial = tuf.DefaultRoot()
	}
	read := &recorded{from: from, files: map[string][]byte{metadata.ROOT: initial}}
	updated, err := tuf.New(&tuf.Options{Root: initial, RepositoryBaseURL: address, DisableLocalCache: true, Context: ctx, Fetcher: read})
	if err != nil {
		return TUFCopy{}, tufError(err)
	}
	content, err := updated.GetTarget(trustedRootTarget)
	if err != nil {
		return TUFCopy{}, tufError(err)
	}
	roles, err := read.roles()
	return TUFCopy{TrustedRoot: content, Roles: roles}, err
}

// tufError explains in our own words why a repository cannot be used.
func tufError(err error) error {
	var status *metadata.ErrDownloadHTTP
	var expired *metadata.ErrExpiredMetadata
	var unsigned *metadata.ErrUnsignedMetadata
	var large *metadata.ErrDownloadLengthMismatch
	var changed *metadata.ErrLengthOrHashMismatch
	var network *egress.Error
	var own problem
	switch {
	case errors.As(err, &network):
		return network
	case errors.As(err, &own):
		return own
	case errors.As(err, &status) && !strings.Contains(status.URL, "://"):
		return &RefusedError{problemf("file %.200q is missing from the copy of the TUF repository", status.URL)}
	case errors.As(err, &status):
		return answered("the TUF repository", status.StatusCode)
	case errors.As(err, &expired):
		return &RefusedError{"the metadata of the TUF repository has expired"}
	case errors.As(err, &unsigned):
		return &RefusedError{"the metadata of the TUF repository is not signed by the keys of its root; check the root.json that was given"}
	case errors.As(err, &large):
		return &RefusedError{"a file of the TUF repository is larger than it may be"}
	case errors.As(err, &changed):
		return &RefusedError{"a file of the TUF repository is not what its metadata says"}
	}
	return &RefusedError{"the TUF repository, or its root, is malformed"}
}

// TUFRepository is the location of a TUF repository.
type TUFRepository struct {
	// Mirror is an https address, or a directory with a copy of the repository's files.
	// Empty is Sigstore's public-good repository.
	Mirror string
	// Root is the initial root.json; empty is Sigstore's.
	Root string
	// Authority is a PEM bundle of CAs for the server, in addition to the system's.
	Authority string
}

// TUFCopy is the verified content of a TUF repository.
type TUFCopy struct {
	// TrustedRoot is its trusted_root.json.
	TrustedRoot []byte
	// Roles are root, targets, snapshot and timestamp.
	Roles []TUFRole
}

// TUFRole is the signed metadata of one role.
type TUFRole struct {
	Name    string    `json:"role"`
	Version int64     `json:"version"`
	Expires time.Time `json:"expires"`
}

// CopyTUF reads a repository and verifies it as for trust stores with spec.source.tuf. It
// reads a directory without a network.
func CopyTUF(ctx context.Context, from TUFRepository) (TUFCopy, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	copied, err := copyTUF(ctx, network{}, from)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		return TUFCopy{}, fmt.Errorf("read the TUF repository: %w", refused)
	case err != nil:
		return TUFCopy{}, fmt.Errorf("read the TUF repository: %w", shown(err))
	case len(copied.TrustedRoot) > maxContent:
		return TUFCopy{},
			fmt.Errorf("read the TUF repository: its %s has %d bytes, the limit is %d", trustedRootTarget, len(copied.TrustedRoot), maxContent)
	}
	return copied, nil
}

func copyTUF(ctx context.Context, n network, from TUFRepository) (TUFCopy, error) {
	directory, local := strings.CutPrefix(from.Mirror, "file://")
	switch {
	case from.Mirror == "", strings.HasPrefix(from.Mirror, "https://"):
		return n.copyTUF(ctx, Source{Kind: TUF, Address: from.Mirror, Root: from.Root, Authority: from.Authority})
	case !local && strings.Contains(from.Mirror, "://"):
		return TUFCopy{}, problemf("%.200q is neither an https address nor a directory", from.Mirror)
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return TUFCopy{}, problemf("directory %.200q cannot be read", directory)
	}
	defer func() { _ = root.Close() }() // it was only read
	return readTUF(ctx, directoryAddress, from.Root, files{root.FS()})
}

// directoryAddress represents the directory in the addresses of the library.
const directoryAddress = "https://directory.invalid"

// files reads a repository's files from a directory, and nothing outside of it.
type files struct{ fs fs.FS }

var _ fetcher.Fetcher = files{}

// DownloadFile implements [fetcher.Fetcher].
func (f files) DownloadFile(address string, limit int64, _ time.Duration) ([]byte, error) {
	name, err := url.PathUnescape(strings.TrimPrefix(address, directoryAddress+"/"))
	if err != nil {
		return nil, problem("the name of a file of the TUF repository is malformed")
	}
	file, err := f.fs.Open(path.Clean(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &metadata.ErrDownloadHTTP{StatusCode: http.StatusNotFound, URL: name}
	}
	if err != nil {
		return nil, problemf("file %.200q of the TUF repository cannot be read", name)
	}
	defer func() { _ = file.Close() }() // it was only read
	limit = min(limit, maxReply)
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, problemf("file %.200q of the TUF repository cannot be read", name)
	case int64(len(content)) > limit:
		return nil, &metadata.ErrDownloadLengthMismatch{Msg: "too large"}
	}
	return content, nil
}

// recorded keeps the metadata that the library read, because the library only returns the
// verified result.
type recorded struct {
	from  fetcher.Fetcher
	files map[string][]byte // by role
}

// roleFile matches the name of a top-level role's metadata, with a version or without.
const roleFile = `^(?:[0-9]+\.)?(root|targets|snapshot|timestamp)\.json$`

// DownloadFile implements [fetcher.Fetcher].
func (r *recorded) DownloadFile(address string, limit int64, timeout time.Duration) ([]byte, error) {
	content, err := r.from.DownloadFile(address, limit, timeout)
	if err != nil {
		return nil, err
	}
	// Targets lie below targets/, and their signers may call one root.json.
	if match := regexp.MustCompile(roleFile).FindStringSubmatch(path.Base(address)); match != nil &&
		path.Base(path.Dir(address)) != "targets" {
		r.files[match[1]] = content
	}
	return content, nil
}

// roles returns the last metadata of each role. Call it after the library has verified all of
// it: each file either became trusted or ended the update.
func (r *recorded) roles() ([]TUFRole, error) {
	var all []TUFRole
	for _, name := range []string{metadata.ROOT, metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP} {
		var file struct {
			Signed struct {
				Version int64     `json:"version"`
				Expires time.Time `json:"expires"`
			} `json:"signed"`
		}
		if err := json.Unmarshal(r.files[name], &file); err != nil || file.Signed.Version < 1 || file.Signed.Expires.IsZero() {
			return nil, problemf("the metadata of role %s of the TUF repository is malformed", name)
		}
		all = append(all, TUFRole{Name: name, Version: file.Signed.Version, Expires: file.Signed.Expires.UTC()})
	}
	return all, nil
}

// EncodeRoles encodes roles for the annotation of exported content.
func EncodeRoles(roles []TUFRole) (string, error) {
	text, err := json.Marshal(roles)
	if err != nil {
		return "", fmt.Errorf("write TUF roles: %w", err)
	}
	return string(text), nil
}

// Renews reports whether the content of a repository must be renewed before the role expires,
// as for root and targets. The others only promise that a copy is fresh.
func (r TUFRole) Renews() bool { return r.Name == metadata.ROOT || r.Name == metadata.TARGETS }

// DecodeRoles reads the output of [EncodeRoles], nothing if text is empty.
func DecodeRoles(text string) ([]TUFRole, error) {
	if text == "" {
		return nil, nil
	}
	var roles []TUFRole
	if len(text) > maxRolesText || json.Unmarshal([]byte(text), &roles) != nil {
		return nil, errors.New("it is not the list of roles that trust export writes")
	}
	for _, role := range roles {
		if role.Expires.IsZero() || role.Name == "" {
			return nil, errors.New("a role has no name or no end")
		}
	}
	return roles, nil
}
