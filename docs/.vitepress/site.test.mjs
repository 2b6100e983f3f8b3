// Looks at the built site in Chromium, as a reader does, on a phone and on a desk, in light and dark: the start
// page, the search, the pictures. Links lead to headings, and the left column has every page. A test that fails
// keeps a screenshot in .vitepress/screenshots; with SHOTS=1 every test does.
import assert from 'node:assert/strict'
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { chromium } from 'playwright-core'

const site = fileURLToPath(new URL('./dist/', import.meta.url))
const shots = fileURLToPath(new URL('./screenshots/', import.meta.url))
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json', '.woff2': 'font/woff2' }
const views = [390, 1280].flatMap((width) => ['light', 'dark'].map((scheme) => ({ width, scheme })))
const programs = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'].filter(Boolean)
const pictures = readdirSync(fileURLToPath(new URL('../pictures/', import.meta.url))).filter((name) => name.endsWith('.dot')).map((name) => name.slice(0, -4))
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
  browser = await chromium.launch({ executablePath: programs.find((name) => existsSync(name)) ?? programs[0], args: ['--no-sandbox'] })
})

after(async () => {
  await browser?.close()
  server?.close()
})

// look opens a page in a view and keeps a screenshot if what it checks fails.
async function look(t, { width, scheme }, name, check) {
  const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme: scheme })
  page.setDefaultTimeout(60_000)
  const errors = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith('data:')) errors.push(`asks ${request.url()}`)
  })
  let failed = true
  try {
    await page.goto(address + name, { waitUntil: 'load' })
    await page.waitForFunction(() => document.querySelector('#app').__vue_app__)
    assert.equal(await page.evaluate(() => document.documentElement.classList.contains('dark')), scheme === 'dark')
    await check(page)
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.ok(overflow <= 0, `the page is ${overflow} pixels wider than the screen`)
    assert.deepEqual(errors, [])
    failed = false
  } finally {
    if (failed || process.env.SHOTS) {
      mkdirSync(shots, { recursive: true })
      await page.screenshot({ path: path.join(shots, `${t.name.replaceAll(/[^a-z0-9]+/gi, '-')}.png`) })
    }
    await page.close()
  }
}

for (const view of views) {
  const seen = `at ${view.width} pixels, ${view.scheme}`

  test(`the start page says what Landwaiter is ${seen}`, async (t) => {
    await look(t, view, '/', async (page) => {
      assert.match(await page.locator('h1').first().innerText(), /Landwaiter/)
      assert.ok((await page.locator('main a[href]').count()) >= 3)
    })
  })

  test(`the search finds a page by a word of it ${seen}`, async (t) => {
    await look(t, view, '/', async (page) => {
      await page.locator('#local-search button').first().click()
      await page.locator('.VPLocalSearchBox input').fill('break-glass')
      const first = page.locator('.VPLocalSearchBox .results a').first()
      await first.waitFor()
      if (process.env.SHOTS) await page.screenshot({ path: path.join(shots, `search-${view.width}-${view.scheme}.png`) })
      await first.click()
      await page.waitForURL((url) => url.pathname !== '/')
      assert.match((await page.locator('main').innerText()).toLowerCase(), /break-glass/)
    })
  })

  for (const name of view.scheme === 'light' ? pictures : ['request']) {
    test(`the picture ${name} can be read ${seen}`, async (t) => {
      await look(t, view, `/concepts/${name}`, async (page) => {
        const picture = page.locator(`main img[src*="${name}"]`)
        await picture.scrollIntoViewIfNeeded()
        const size = await picture.evaluate(async (image) => {
          await image.decode()
          return { natural: image.naturalWidth, shown: image.getBoundingClientRect().width }
        })
        assert.ok(size.natural > 0, 'the picture did not load')
        assert.ok(size.shown <= view.width, `the picture is ${size.shown} pixels wide`)
        assert.ok(size.shown / size.natural >= 0.6, `the picture is drawn at ${size.shown / size.natural} of its size, so its text is too small`)
      })
    })
  }
}

// built returns the pages of the site by their addresses.
function built() {
  const names = readdirSync(site, { recursive: true }).filter((name) => name.endsWith('.html') && name !== '404.html')
  return new Map(names.map((name) => [`/${name.replace(/(index)?\.html$/, '')}`, readFileSync(path.join(site, name), 'utf8')]))
}

test('the left column has every page', () => {
  const pages = built()
  const column = pages.get('/').match(/<aside class="VPSidebar".*?<\/aside>/s)[0]
  const missing = [...pages.keys()].filter((name) => name !== '/' && !column.includes(`href="${name}"`))
  assert.deepEqual(missing, [])
})

test('every link to a heading of the site leads to one', () => {
  const pages = built()
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
