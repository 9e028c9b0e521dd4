//go:build !linux

package main

import "errors"

func freeMemory() (float64, error) { return 0, errors.ErrUnsupported }

func residentMemory() (int64, error) { return 0, errors.ErrUnsupported }
