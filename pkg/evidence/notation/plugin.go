package notation

import (
	"context"
	"errors"

	"github.com/notaryproject/notation-go/plugin"
	"github.com/notaryproject/notation-go/verifier"
	framework "github.com/notaryproject/notation-plugin-framework-go/plugin"
)

// Attributes that require a verification plugin (signature specification, "Extended
// attributes").
const (
	pluginHeader        = verifier.HeaderVerificationPlugin
	pluginVersionHeader = verifier.HeaderVerificationPluginMinVersion
)

// awsPluginVersion is above every 1.x version of AWS's plugin: this package understands
// what they verify. A signature that requires 2.0.0 is refused.
const awsPluginVersion = "1.999999.999999"

// inProcess stands in for the programs that the library would start. It knows one plugin
// and runs nothing.
type inProcess struct{}

var _ plugin.Manager = inProcess{}

// Get returns the stand-in for AWS Signer's plugin and an error for every other name.
func (inProcess) Get(_ context.Context, name string) (framework.Plugin, error) {
	if name != awsPlugin {
		return nil, errors.New("there are no plugins")
	}
	return awsVerifier{}, nil
}

// List returns the one name.
func (inProcess) List(context.Context) ([]string, error) { return []string{awsPlugin}, nil }

// awsVerifier tells the library that the plugin exists. checkAttributes and
// checkAWSRevocation do its work; everything else fails.
type awsVerifier struct{}

var errNotAPlugin = errors.New("no plugin is run")

// GetMetadata names a capability, because the library refuses a plugin without one. It is
// revocation, which the policy skips: so the library never asks for it, and still checks
// the trusted identities.
func (awsVerifier) GetMetadata(context.Context, *framework.GetMetadataRequest) (*framework.GetMetadataResponse, error) {
	return &framework.GetMetadataResponse{Name: awsPlugin, Version: awsPluginVersion, Capabilities: []framework.Capability{framework.CapabilityRevocationCheckVerifier}}, nil
}

// VerifySignature fails.
func (awsVerifier) VerifySignature(context.Context, *framework.VerifySignatureRequest) (*framework.VerifySignatureResponse, error) {
	return nil, errNotAPlugin
}

// DescribeKey fails.
func (awsVerifier) DescribeKey(context.Context, *framework.DescribeKeyRequest) (*framework.DescribeKeyResponse, error) {
	return nil, errNotAPlugin
}

// GenerateSignature fails.
func (awsVerifier) GenerateSignature(context.Context, *framework.GenerateSignatureRequest) (*framework.GenerateSignatureResponse, error) {
	return nil, errNotAPlugin
}

// GenerateEnvelope fails.
func (awsVerifier) GenerateEnvelope(context.Context, *framework.GenerateEnvelopeRequest) (*framework.GenerateEnvelopeResponse, error) {
	return nil, errNotAPlugin
}
