#!/bin/sh
set -eu
find clusters tenants infrastructure -name kustomization.yaml
