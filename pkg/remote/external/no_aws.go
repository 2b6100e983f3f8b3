//go:build !aws

package external

import "context"

func aws() cloudAPI { return absent("AWS", "aws") }

// KnowsAWS reports whether this build can ask AWS.
func KnowsAWS() bool { return false }

func (network) askAWSSigner(context.Context, awsQuestion) ([]string, error) {
	return nil, notInThisBuild("AWS", "aws")
}
