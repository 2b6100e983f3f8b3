package main

import (
	"fmt"
	"slices"
)

// ratio is what rounds say of one thing over another: in each round both had a turn, so
// a machine that becomes slower is slower for both.
type ratio struct {
	Median float64 `json:"median"`
	// Low and High hold the true median with at least 95 % probability, whatever the
	// distribution is (order statistics). They are the extremes if rounds are too few.
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
	Rounds []float64 `json:"rounds"`
}

func (r *ratio) String() string {
	if r == nil {
		return "not measured"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Median, r.Low, r.High)
}

// ratioOf sums up the quotients of rounds.
func ratioOf(rounds []float64) *ratio {
	sorted := slices.Sorted(slices.Values(rounds))
	n := len(sorted)
	if n == 0 {
		return nil
	}
	skip := outside(n)
	return &ratio{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[skip], High: sorted[n-1-skip], Rounds: rounds}
}

// outside is how many of n values, at each end, an interval for the median leaves out:
// each value is below the median with probability one half, so the number of those that
// are has a binomial distribution, and both tails together may have 5 %.
func outside(n int) int {
	each := 1.0
	for range n {
		each /= 2
	}
	tail, k := 0.0, 0
	for ; k < n/2; k++ {
		if tail += each; 2*tail > 0.05 {
			break
		}
		each *= float64(n-k) / float64(k+1)
	}
	return max(k-1, 0)
}
