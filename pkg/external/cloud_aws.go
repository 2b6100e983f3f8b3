//go:build aws

package external

import (
	"context"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/sigstore/sigstore/pkg/signature/kms/aws"
	sigoptions "github.com/sigstore/sigstore/pkg/signature/options"
)

// awsKey reads a key of AWS KMS. Credentials are accessKeyID, secretAccessKey,
// sessionToken (optional) and region; the default is the identity of this process.
func awsKey(ctx context.Context, uri string, given map[string]string) (crypto.PublicKey, error) {
	options, err := awsIdentity(given)
	if err != nil {
		return nil, err
	}
	if len(given) > 0 {
		if given["region"] == "" {
			return nil, errors.New("the credentials for AWS KMS need a region")
		}
		options = append(options, config.WithRegion(given["region"]))
	}
	client, err := aws.LoadSignerVerifier(ctx, uri, options...)
	if err != nil {
		return nil, fmt.Errorf("open the AWS key: %w", err)
	}
	return client.PublicKey(sigoptions.WithContext(ctx))
}

// awsIdentity makes the SDK use the given credentials, and none of this process.
func awsIdentity(given map[string]string) ([]func(*config.LoadOptions) error, error) {
	if len(given) == 0 {
		return nil, nil
	}
	if given["accessKeyID"] == "" || given["secretAccessKey"] == "" {
		return nil, errors.New("the credentials for AWS need accessKeyID and secretAccessKey")
	}
	return []func(*config.LoadOptions) error{config.WithCredentialsProvider(
		credentials.NewStaticCredentialsProvider(given["accessKeyID"], given["secretAccessKey"], given["sessionToken"]))}, nil
}

// ecrLogin gets a token of Elastic Container Registry, which is valid for 12 hours.
func ecrLogin(ctx context.Context, host string, given map[string]string) (user, password string, err error) {
	// 123456789012.dkr.ecr.eu-central-1.amazonaws.com
	parts := strings.Split(host, ".")
	if len(parts) < 6 {
		return "", "", fmt.Errorf("%s names no region", host)
	}
	options, err := awsIdentity(given)
	if err != nil {
		return "", "", err
	}
	own, err := config.LoadDefaultConfig(ctx, append(options, config.WithRegion(parts[3]))...)
	if err != nil {
		return "", "", fmt.Errorf("find the AWS identity: %w", err)
	}
	answer, err := ecr.NewFromConfig(own).GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return "", "", fmt.Errorf("get an ECR token: %w", err)
	}
	if len(answer.AuthorizationData) == 0 {
		return "", "", errors.New("ECR gave no token")
	}
	text, err := base64.StdEncoding.DecodeString(awssdk.ToString(answer.AuthorizationData[0].AuthorizationToken))
	if err != nil {
		return "", "", errors.New("the ECR token is malformed")
	}
	user, password, ok := strings.Cut(string(text), ":")
	if !ok {
		return "", "", errors.New("the ECR token is malformed")
	}
	return user, password, nil
}
