package cluster

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// SigstoreBinaries is the folder with fulcio, rekor and timestamp-server, as
// test/tools/sigstore/build.sh prints it.
const SigstoreBinaries = "LANDWAITER_SIGSTORE_BIN"

// RekorOrigin is the name of the log in its checkpoints.
const RekorOrigin = "rekor.localhost"

// Sigstore is a CA, a transparency log (Rekor v2) and a
// timestamp authority, as processes on loopback. There is no certificate
// transparency log.
type Sigstore struct {
	// Fulcio, Rekor and Timestamps are addresses, the last one with its path.
	Fulcio, Rekor, Timestamps string
	// FulcioChain, RekorKey and TimestampChain are PEM files.
	FulcioChain, RekorKey, TimestampChain string

	processes []*Process
}

// StartSigstore starts the servers in the folder binaries, with data and logs in dir. Only
// one instance can run at a time, because the timestamp authority always serves its
// metrics on port 2112. issuers maps addresses of identity providers to their types:
// "email" or "github-workflow". Tokens are for the audience "sigstore".
func StartSigstore(ctx context.Context, binaries, dir string, issuers map[string]string) (_ *Sigstore, err error) {
	ports, err := FreePorts(8)
	if err != nil {
		return nil, err
	}
	s := &Sigstore{Rekor: "http://" + loopback(ports[0]), Timestamps: "http://" + loopback(ports[2]) + "/api/v1/timestamp", Fulcio: "http://" + loopback(ports[3])}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if err := s.keyOfLog(dir); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "fulcio.json")
	if err := writeIssuers(config, issuers); err != nil {
		return nil, err
	}
	for _, server := range []struct {
		command Command
		ready   string
	}{
		{Command{Name: "rekor", Path: filepath.Join(binaries, "rekor"), Args: []string{"serve", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1",
			fmt.Sprintf("--http-port=%d", ports[0]), fmt.Sprintf("--grpc-port=%d", ports[1]), fmt.Sprintf("--http-metrics-port=%d", ports[6]),
			"--hostname=" + RekorOrigin,
			"--storage-dir=" + filepath.Join(dir, "log"), "--signer-filepath=" + filepath.Join(dir, "rekor.key"), "--checkpoint-interval=1s"}}, s.Rekor + "/healthz"},
		{Command{Name: "timestamps", Path: filepath.Join(binaries, "timestamp-server"), Args: []string{"serve", "--host=127.0.0.1",
			fmt.Sprintf("--port=%d", ports[2]), "--timestamp-signer=memory", "--disable-ntp-monitoring"}}, s.Timestamps + "/certchain"},
		{Command{Name: "fulcio", Path: filepath.Join(binaries, "fulcio"), Args: []string{"serve", "--ca=ephemeralca", "--ct-log-url=", "--host=127.0.0.1",
			fmt.Sprintf("--port=%d", ports[3]), "--grpc-host=127.0.0.1", fmt.Sprintf("--grpc-port=%d", ports[4]), fmt.Sprintf("--metrics-port=%d", ports[5]),
			"--config-path=" + config}}, s.Fulcio + "/api/v1/rootCert"},
	} {
		process, err := StartProcess(dir, server.command)
		if err != nil {
			return nil, err
		}
		s.processes = append(s.processes, process)
		if err := process.Await(ctx, func(ctx context.Context) error { _, err := get(ctx, server.ready); return err }); err != nil {
			return nil, err
		}
	}
	for file, address := range map[*string]string{&s.FulcioChain: s.Fulcio + "/api/v1/rootCert", &s.TimestampChain: s.Timestamps + "/certchain"} {
		text, err := get(ctx, address)
		if err != nil {
			return nil, err
		}
		*file = filepath.Join(dir, fmt.Sprintf("chain-%d.pem", len(text)))
		if err := os.WriteFile(*file, text, 0o600); err != nil {
			return nil, fmt.Errorf("keep chain: %w", err)
		}
	}
	return s, nil
}

// Stop ends the servers.
func (s *Sigstore) Stop() {
	for _, process := range s.processes {
		process.Kill()
	}
}

// keyOfLog makes the log's key for signing checkpoints.
func (s *Sigstore) keyOfLog(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o750); err != nil {
		return fmt.Errorf("make a folder for the log: %w", err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key for the log: %w", err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("encode the log's key: %w", err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return fmt.Errorf("encode the log's key: %w", err)
	}
	s.RekorKey = filepath.Join(dir, "rekor.pub")
	for file, block := range map[string]*pem.Block{
		filepath.Join(dir, "rekor.key"): {Type: "PRIVATE KEY", Bytes: privateDER}, s.RekorKey: {Type: "PUBLIC KEY", Bytes: publicDER},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("keep the log's key: %w", err)
		}
	}
	return nil
}

func writeIssuers(file string, issuers map[string]string) error {
	list := map[string]any{}
	for address, kind := range issuers {
		list[address] = map[string]string{"IssuerURL": address, "ClientID": "sigstore", "Type": kind}
	}
	text, err := json.Marshal(map[string]any{"OIDCIssuers": list})
	if err != nil {
		return fmt.Errorf("encode fulcio's configuration: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write fulcio's configuration: %w", err)
	}
	return nil
}

// get returns the body of a URL on loopback.
func get(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: status %d", address, response.StatusCode)
	}
	return text, nil
}
