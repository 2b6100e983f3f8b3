package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/pkg/server/serving"
)

// clientCAOverlap is how long a replaced client CA of a Secret is accepted: Gatekeeper's
// replicas read the new certificate at different times.
const clientCAOverlap = 10 * time.Minute

// identityFlags are the flags of the serving certificate in files and of the CAs of clients.
type identityFlags struct {
	tlsDir    string
	clientCAs []string
}

func (i *identityFlags) register(f *pflag.FlagSet) {
	f.StringVar(&i.tlsDir, "tls-dir", "", "directory with the serving certificate: tls.crt and tls.key, as in a mounted Secret")
	f.StringSliceVar(&i.clientCAs, "client-ca", nil, "CA certificates of clients: FILE, or secret/NAMESPACE/NAME[/KEY], where KEY is ca.crt "+
		"if omitted (repeatable)")
}

// options returns the options that the flags describe.
func (i *identityFlags) options() (serving.Options, error) {
	options := serving.Options{ClientCAOverlap: clientCAOverlap}
	if i.tlsDir != "" {
		options.CertificateFile = filepath.Join(i.tlsDir, corev1.TLSCertKey)
		options.KeyFile = filepath.Join(i.tlsDir, corev1.TLSPrivateKeyKey)
	}
	for _, value := range i.clientCAs {
		name, secret := strings.CutPrefix(value, "secret/")
		if !secret {
			options.ClientCAFiles = append(options.ClientCAFiles, value)
			continue
		}
		parts := append(strings.Split(name, "/"), "ca.crt")
		if len(parts) < 3 || len(parts) > 4 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
			return options,
				fmt.Errorf("--client-ca is %q, it must be secret/NAMESPACE/NAME or secret/NAMESPACE/NAME/KEY, or a file, such as "+
					"./secret/ca.crt", value)
		}
		options.ClientCASecrets = append(options.ClientCASecrets, serving.SecretKey{Namespace: parts[0], Name: parts[1], Key: parts[2]})
	}
	return options, nil
}
