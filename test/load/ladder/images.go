package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// sample is an image, by digest, and whether it is signed.
type sample struct {
	reference string
	signed    bool
}

// push fills the registry. One image in ten is not signed.
func (s *stage) push(ctx context.Context) error {
	for i := range s.options.images {
		img, err := s.registry.PushImage(ctx, fmt.Sprintf("shared/app-%d", i), "v1")
		if err != nil {
			return fmt.Errorf("push an image: %w", err)
		}
		signed := i%10 != 9
		if signed {
			if _, err := s.registry.SignCosign(ctx, img, s.key, fixture.CosignOptions{}); err != nil {
				return fmt.Errorf("sign an image: %w", err)
			}
		}
		s.pushed = append(s.pushed, img)
		s.images = append(s.images, pinned(img, signed))
	}
	return nil
}

// signedImages are those of the stage that are signed.
func (s *stage) signedImages() []sample {
	return slices.DeleteFunc(slices.Clone(s.images), func(img sample) bool { return !img.signed })
}

// signedBy makes images that nothing else uses, with signatures of as many keys, the
// last of which the namespaces trust.
func (s *stage) signedBy(ctx context.Context, name string, images, signatures int) ([]sample, error) {
	made := make([]sample, images)
	for i := range made {
		img, err := s.registry.PushImage(ctx, fmt.Sprintf("%s/app-%d", name, i), "v1")
		if err != nil {
			return nil, fmt.Errorf("push an image: %w", err)
		}
		if err := s.signByOthers(ctx, img, signatures-1); err != nil {
			return nil, err
		}
		if _, err := s.registry.SignCosign(ctx, img, s.key, fixture.CosignOptions{}); err != nil {
			return nil, fmt.Errorf("sign an image: %w", err)
		}
		made[i] = pinned(img, true)
	}
	return made, nil
}

// signAgain adds signatures of keys that nobody trusts to every image that is signed.
func (s *stage) signAgain(ctx context.Context, more int) error {
	for i, img := range s.pushed {
		if !s.images[i].signed {
			continue
		}
		if err := s.signByOthers(ctx, img, more); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) signByOthers(ctx context.Context, img fixture.Image, signatures int) error {
	for len(s.others) < signatures {
		key, err := fixture.NewCosignKey(fixture.ECDSAP256)
		if err != nil {
			return fmt.Errorf("make a key: %w", err)
		}
		s.others = append(s.others, key)
	}
	for _, key := range s.others[:signatures] {
		if _, err := s.registry.SignCosign(ctx, img, key, fixture.CosignOptions{}); err != nil {
			return fmt.Errorf("sign an image: %w", err)
		}
	}
	return nil
}

// pinned is an image as it is asked for, by digest.
func pinned(img fixture.Image, signed bool) sample {
	ref := img.Reference
	ref.Tag = ""
	return sample{reference: ref.String(), signed: signed}
}
