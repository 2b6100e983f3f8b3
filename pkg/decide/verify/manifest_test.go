package verify

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a location has read and checked before the others answer is among what is read and checked in the end, so it
// neither changes the result nor adds work.
func TestTheShareOfEachLocationIsAmongWhatIsChecked(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		all := make([]*manifest, 40)
		for i := range all {
			all[i] = &manifest{more: random.IntN(2) * random.IntN(50)}
			for range random.IntN(12) {
				all[i].candidates = append(all[i].candidates, &candidate{in: all[i]})
			}
		}
		lists := make([][]*manifest, 1+random.IntN(5))
		for at := range lists {
			for _, i := range random.Perm(len(all))[:random.IntN(len(all))] {
				lists[at] = append(lists[at], all[i])
			}
		}
		const most = 20
		merged, _ := merge(lists, most)
		taken, over := fairly(lists, most)
		require.LessOrEqual(t, len(merged), most)
		require.LessOrEqual(t, len(taken), most)
		require.GreaterOrEqual(t, over, 0)
		distinct := map[*candidate]bool{}
		for _, c := range taken {
			distinct[c] = true
		}
		require.Len(t, distinct, len(taken), "none is checked twice")
		for _, list := range lists {
			require.Subset(t, merged, list[:min(len(list), most/len(lists))])
			share, _ := fairly([][]*manifest{list}, most/len(lists))
			require.Subset(t, taken, share)
		}
	}
}
