package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMedianHasTheIntervalOfItsOrderStatistics(t *testing.T) {
	ten := []float64{10, 1, 9, 2, 8, 3, 7, 4, 6, 5}
	require.Equal(t, "5.50 (2.00 to 9.00)", ratioOf(ten).String()) // 97.9 %
	require.Equal(t, "2.00 (1.00 to 3.00)", ratioOf([]float64{3, 1, 2}).String())
	require.Equal(t, "1.00 (1.00 to 1.00)", ratioOf([]float64{1}).String())
	require.Nil(t, ratioOf(nil))
	for n, skipped := range map[int]int{1: 0, 5: 0, 6: 0, 8: 0, 9: 1, 10: 1, 12: 2, 20: 5} {
		require.Equal(t, skipped, outside(n), n)
	}
}
