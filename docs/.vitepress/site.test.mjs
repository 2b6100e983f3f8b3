// Looks at the built site in Chromium, as a reader does: the start page, the search, a picture, and that
// links between pages lead to headings. Keeps a screenshot of each width in .vitepress/screenshots if CHROMIUM_SHOTS
// is set, and of whatever failed always.
import assert from 'node:assert/strict'
import { createReadStream, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { chromium } from 'playwright-core'

const site = fileURLToPath(new URL('./dist/', import.meta.url))
const shots = fileURLToPath(new URL('./screenshots/', import.meta.url))
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json', '.woff2': 'font/woff2' }
const widths = [390, 1280]
let server, browser, address

// serve answers as a static host does: /howto/install is howto/install.html.
function serve(request, response) {
  const name = decodeURIComponent(new URL(request.url, 'http://localhost').pathname)
  for (const file of [name.endsWith('/') ? `${name}index.html` : name, `${name}.html`]) {
    const full = path.join(site, file)
    if (full.startsWith(site) && statSync(full, { throwIfNoEntry: false })?.isFile()) {
      response.writeHead(200, { 'Content-Type': types[path.extname(full)] ?? 'application/octet-stream' })
      createReadStream(full).pipe(response)
      return
    }
  }
  response.writeHead(404).end()
}

before(async () => {
  server = createServer(serve)
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  address = `http://127.0.0.1:${server.address().port}`
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
})

after(async () => {
  await browser?.close()
  server?.close()
})

// look opens a page at a width and keeps a screenshot if what it checks fails.
async function look(t, width, address, check) {
  const page = await browser.newPage({ viewport: { width, height: 800 } })
  const errors = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(address).origin) && !request.url().startsWith('data:')) errors.push(`asks ${request.url()}`)
  })
  let failed = true
  try {
    await page.goto(address, { waitUntil: 'networkidle' })
    await check(page)
    assert.deepEqual(errors, [])
    failed = false
  } finally {
    if (failed || process.env.CHROMIUM_SHOTS) {
      mkdirSync(shots, { recursive: true })
      await page.screenshot({ path: path.join(shots, `${t.name.replaceAll(/[^a-z0-9]+/gi, '-')}-${width}.png`), fullPage: false })
    }
    await page.close()
  }
}

for (const width of widths) {
  test(`the start page says what Landwaiter is and leads on at ${width} pixels`, async (t) => {
    await look(t, width, `${address}/`, async (page) => {
      assert.match(await page.locator('h1').first().innerText(), /Landwaiter/)
      assert.ok((await page.locator('main a[href]').count()) >= 3)
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      assert.ok(overflow <= 0, `the page is ${overflow} pixels wider than the screen`)
    })
  })

  test(`a picture is drawn at ${width} pixels`, async (t) => {
    await look(t, width, `${address}/concepts/request`, async (page) => {
      const picture = page.locator('main img').first()
      await picture.scrollIntoViewIfNeeded()
      const size = await picture.evaluate((image) => [image.complete, image.naturalWidth, image.clientWidth])
      assert.ok(size[0] && size[1] > 0, 'the picture did not load')
      assert.ok(size[2] <= width, `the picture is ${size[2]} pixels wide`)
    })
  })

  test(`the search finds a page by a word of it at ${width} pixels`, async (t) => {
    await look(t, width, `${address}/`, async (page) => {
      await page.locator('#local-search button').first().click()
      await page.locator('.VPLocalSearchBox input').fill('break-glass')
      const first = page.locator('.VPLocalSearchBox .results a').first()
      await first.waitFor()
      await first.click()
      await page.waitForURL((url) => url.pathname !== '/')
      assert.match((await page.locator('main').innerText()).toLowerCase(), /break-glass/)
    })
  })
}

test('every link to a heading of the site leads to one', () => {
  const pages = new Map()
  for (const name of readdirSync(site, { recursive: true }).filter((name) => name.endsWith('.html'))) {
    pages.set(`/${name.replace(/(index)?\.html$/, '')}`, readFileSync(path.join(site, name), 'utf8'))
  }
  const missing = []
  for (const [from, text] of pages) {
    for (const [, to] of text.matchAll(/<a [^>]*href="([^"]*#[^"]+)"/g)) {
      const target = new URL(to, `http://site${from}`)
      if (target.host !== 'site') continue
      const page = pages.get(target.pathname.replace(/\.html$/, ''))
      const id = decodeURIComponent(target.hash.slice(1))
      if (!page || !(page.includes(`id="${id}"`) || page.includes(`name="${id}"`))) missing.push(`${from}: ${to}`)
    }
  }
  assert.deepEqual(missing, [])
})
