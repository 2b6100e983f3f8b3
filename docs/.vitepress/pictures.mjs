// Draws every picture of docs/pictures from its text: request.dot becomes request.svg.
// With --check it writes nothing, and fails if a drawing is not what its text says.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import path from 'node:path'
import { instance } from '@viz-js/viz'

const folder = fileURLToPath(new URL('../pictures/', import.meta.url))
const check = process.argv.includes('--check')
const viz = await instance()
let stale = 0
for (const name of readdirSync(folder).filter((name) => name.endsWith('.dot')).sort()) {
  const drawing = path.join(folder, name.replace(/\.dot$/, '.svg'))
  const drawn = viz.renderString(readFileSync(path.join(folder, name), 'utf8'), { format: 'svg' })
  let before = ''
  try {
    before = readFileSync(drawing, 'utf8')
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
  if (before === drawn) continue
  if (check) {
    console.error(`docs/pictures/${path.basename(drawing)} is not what ${name} says: run npm run pictures in docs`)
    stale++
  } else {
    writeFileSync(drawing, drawn)
    console.log(`drew docs/pictures/${path.basename(drawing)}`)
  }
}
process.exitCode = stale ? 1 : 0
