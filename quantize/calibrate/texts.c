/*
 * The default texts of the calibration: 24 short original texts of many kinds and 24 stories,
 * written for this project and under its license. Returned by mgl_quantize_texts.
 */
#include "quantize/quantize.h"

static const char *const texts[] = {
    "The ferry left the harbor at six in the morning, before the fog had lifted. Two fishermen "
    "stood at the rail and argued about the price of rope. Behind them a girl with a green "
    "backpack "
    "counted the gulls and wrote the numbers into a notebook. When the island appeared, first as a "
    "gray line and then as a hill with white houses, she closed the book and said to nobody in "
    "particular that there had been forty-one gulls, and that this was four more than yesterday.",
    "Question: Why does bread become hard when it is stored in the refrigerator?\nAnswer: Starch "
    "in "
    "fresh bread holds water in a disordered form. When the bread cools, the starch slowly forms "
    "crystals again and releases the water. This process is fastest a few degrees above freezing, "
    "so bread becomes stale in a refrigerator sooner than on a shelf. Freezing stops it.",
    "def moving_average(values, size):\n    \"\"\"Return the means of all windows of a "
    "list.\"\"\"\n "
    "   if size <= 0:\n        raise ValueError(\"size must be positive\")\n    total = sum(values["
    ":size])\n    result = [total / size]\n    for i in range(size, len(values)):\n        total "
    "+= "
    "values[i] - values[i - size]\n        result.append(total / size)\n    return result\n",
    "Dear Ms. Okafor,\n\nthank you for your order of March 3. The two lamps were sent yesterday "
    "and "
    "should arrive on Friday between 9:00 and 12:00. The third lamp is not in stock at the moment. "
    "We expect a delivery in about two weeks, and we will send it without additional cost. If you "
    "prefer a refund of 39.90 euros, please reply to this message.\n\nKind regards,\nThe service "
    "team",
    "Once upon a time a small fox lived near a mill. Every evening the miller left a bowl of milk "
    "on "
    "the step, and every morning the bowl was empty. One night the fox heard the miller call for "
    "help, for the wheel had caught his sleeve. The fox pulled the rope of the bell until the "
    "whole "
    "village came running. After that the bowl was never left on the step again: it stood on the "
    "table, and so did the fox.",
    "The area of a circle with the radius r is pi times r squared. If the radius is doubled, the "
    "area is multiplied by four, because (2r)^2 = 4 r^2. For example, a pizza with a diameter of "
    "40 "
    "centimeters has an area of about 1,257 square centimeters, and two pizzas with a diameter of "
    "20 centimeters have only about 628 together. So the large one is the better deal if it costs "
    "less than four times as much as a small one.",
    "User: Can you explain what a hash table is?\nAssistant: A hash table stores pairs of keys and "
    "values. A function, the hash, turns each key into a number, and this number selects a slot in "
    "an array. To find a key again, the table computes the same number and looks into the same "
    "slot.\nUser: What if two keys get the same slot?\nAssistant: That is a collision. The table "
    "can "
    "keep a small list in each slot, or it can try the following slots until one is free.",
    "In the spring of 1854 the council decided to build a second bridge over the river. The old "
    "bridge, made of wood, had been repaired eleven times, and heavy carts were no longer allowed "
    "to "
    "cross it. Three engineers sent plans. The cheapest used iron from a foundry in the north; the "
    "most beautiful had five arches of stone. The council chose neither of them and postponed the "
    "decision until the autumn, when a flood took the old bridge away.",
    "{\"name\": \"garden sensor\", \"version\": 3, \"enabled\": true, \"readings\": [{\"time\": "
    "\"2024-05-01T06:00:00Z\", \"temperature\": 11.4, \"humidity\": 0.82}, {\"time\": "
    "\"2024-05-01T07:00:00Z\", \"temperature\": 12.9, \"humidity\": 0.77}], \"notes\": null}",
    "Lentil soup for four people. Chop two onions and three carrots and fry them in oil for five "
    "minutes. Add a spoon of cumin, 250 grams of red lentils and one liter of vegetable stock. Let "
    "the soup boil, then cook it with a lid for twenty minutes. Stir now and then. Finally add the "
    "juice of half a lemon, salt and pepper, and serve with bread.",
    "The cell membrane separates the inside of a cell from its surroundings. It consists of two "
    "layers of lipids with proteins between them. Small molecules such as oxygen pass through it "
    "freely, but ions need channels, which open and close. Some proteins pump ions against their "
    "gradient and use energy for it. In this way a nerve cell keeps a voltage of about seventy "
    "millivolts across its membrane.",
    "\"Have you seen my keys?\" asked Daniel.\n\"They were on the piano,\" said Ruth, \"next to "
    "the "
    "letters.\"\n\"They are not there now.\"\n\"Then look in the pocket of the coat that you wore "
    "yesterday.\"\nHe went into the hall. There was a pause, then the sound of coins, then "
    "laughter. "
    "\"I found them,\" he called, \"and also the ticket that I lost in April.\"",
    "#include <stdio.h>\n\nint main(void)\n{\n    int count = 0;\n    for (int n = 2; count < 10; "
    "n++) {\n        int is_prime = 1;\n        for (int d = 2; d * d <= n; d++)\n            if "
    "(n "
    "% d == 0)\n                is_prime = 0;\n        if (is_prime) {\n            "
    "printf(\"%d\\n\", "
    "n);\n            count++;\n        }\n    }\n    return 0;\n}\n",
    "The weather on Tuesday: in the morning there will be clouds in the west and some light rain, "
    "mainly near the coast. Around noon the sun comes out, and temperatures rise to 19 degrees in "
    "the valleys and 14 degrees in the hills. The wind is weak and comes from the south. On "
    "Wednesday it becomes warmer, with a chance of thunderstorms in the evening.",
    "A contract needs an offer and an acceptance. An offer must be clear enough that a simple yes "
    "is "
    "sufficient to accept it. An advertisement is usually not an offer but an invitation to make "
    "one. Whoever accepts an offer with changes rejects it and makes a new offer. Silence is not "
    "an "
    "acceptance, except if the parties have agreed on that before.",
    "1. Turn off the machine and pull the plug.\n2. Open the cover with a coin.\n3. Remove the "
    "filter and wash it under running water.\n4. Wait until the filter is completely dry.\n5. Put "
    "it "
    "back with the arrow pointing upward.\n6. Close the cover and press the reset button for three "
    "seconds. The red light goes out.",
    "We compare two methods for the same problem. The first sorts all n records and then reads "
    "them "
    "once, which takes O(n log n) steps and constant additional memory. The second keeps a table "
    "of "
    "the records that it has seen, which takes O(n) steps on average but O(n) memory. For small "
    "inputs the first method was faster in our measurements, since sorting uses the cache well. "
    "Above about one million records the second method needed 40 % less time.",
    "The old clock in the station had stopped at ten past four, and no one had the key to wind it. "
    "Travelers set their watches by it anyway and missed their trains. In the end the station "
    "master painted the words \"not the time\" under it. On the next day a traveler asked him "
    "which "
    "time it was not, and he had to admit that twice a day the sign was wrong.",
    "Jupiter is the largest planet of the solar system. Its mass is 318 times that of the Earth, "
    "and "
    "one rotation takes less than ten hours. It has no solid surface: the pressure rises with "
    "depth "
    "until hydrogen becomes a liquid and finally a metal. Four of its moons, Io, Europa, Ganymede "
    "and Callisto, were seen by Galileo in 1610 through a small telescope.",
    "SELECT city, COUNT(*) AS visits, AVG(rating) AS mean\nFROM reviews\nWHERE year >= 2020 AND "
    "rating IS NOT NULL\nGROUP BY city\nHAVING COUNT(*) > 100\nORDER BY mean DESC\nLIMIT 20;\n",
    "Der Zug nach Hamburg hat heute zwanzig Minuten Verspätung. Bitte achten Sie auf die Anzeigen "
    "am "
    "Gleis. Le musée est ouvert tous les jours sauf le mardi, de dix heures à dix-huit heures. El "
    "perro duerme debajo de la mesa y el gato lo mira desde la ventana. Il treno parte alle otto e "
    "arriva a mezzogiorno.",
    "I have worked as a nurse for nine years, most of them at night. People think that nights are "
    "quiet, but they are only less visible. At three o'clock somebody wants to know what the noise "
    "was, somebody cannot sleep, and somebody wants to talk about a garden that was sold in 1971. "
    "You learn to walk without sound, and to sit down even when there is no time to sit down.",
    "Problem: A tank holds 600 liters. One pipe fills it in 3 hours, another in 6 hours. How long "
    "does it take with both pipes? Solution: The first pipe delivers 600 / 3 = 200 liters an hour, "
    "the second 600 / 6 = 100 liters an hour. Together they deliver 300 liters an hour, so the "
    "tank "
    "is full after 600 / 300 = 2 hours. The answer is 2 hours.",
    "Today the library announced that it will stay open until ten in the evening from October on. "
    "The city pays for two additional employees. Students had asked for longer hours in a petition "
    "with more than three thousand signatures. The director said that the number of visitors had "
    "grown by a fifth within two years, mostly because of the new reading room on the second "
    "floor.",
    /* Stories that the model of tests/models/tales-5m wrote, at temperature 1. */
    "Once there was a quiet badger named Zeke who lived near the harbour. The sun was high, "
    "and Zeke was afraid. One day Zeke lost a brass bell. \"Where is my brass bell?\" said "
    "Zeke. Hana the wren came by. \"Let us look in the old mill,\" said Hana. They walked to "
    "the old mill. There, under a stone, was the brass bell! \"Thank you, Hana,\" said Zeke. "
    "And Zeke was proud again.",
    "Near the windy field lived a clever fox, and the fox was called Sami. Snow lay on the "
    "ground, and Sami was tired. Sami had five apples. Lena gave Sami six more. \"How many do "
    "you have now?\" asked Lena. Sami counted slowly. \"I have eleven apples,\" said Sami. "
    "Then Sami ate nine of them, and two were left. The two friends sat in the attic until "
    "dark.",
    "Once there was a curious cat named Ivo who lived near the harbour. The sun was high, and "
    "Ivo was cross. One day Ivo lost a blue lantern. \"Where is my blue lantern?\" said Ivo. "
    "Ewa the crow came by. \"Let us look in the library,\" said Ewa. They walked to the "
    "library. There, under a stone, was the blue lantern! \"Thank you, Ewa,\" said Ivo. And "
    "Ivo was calm again.",
    "Near the garden lived a clever badger, and the badger was called Nora. The sun was high, "
    "and Nora was lonely. One day Nora lost a paper crown. \"Where is my paper crown?\" said "
    "Nora. Vera the hare came by. \"Let us look in the attic,\" said Vera. They looked and "
    "looked, and at last Vera found the paper crown in the attic. \"Thank you, Vera,\" said "
    "Nora. And Nora was proud again. That night they all slept well.",
    "Uma was a curious fox. Uma lived near the library. Snow lay on the ground, and Uma was "
    "hopeful. Uma wanted to paint a door. \"Shall it be yellow or blue?\" asked Uma. \"I like "
    "blue,\" said Lena the goat. So Uma painted the door blue. From then on everyone in the "
    "library knew the blue door of Uma the fox.",
    "Near the attic lived a small hare, and the hare was called Uma. The stars were out, and "
    "Uma was lonely. A letter came from Zeke the hare. It said: \"Come to the river bank at "
    "2:45, and bring a silver key.\" So Uma took the silver key and set out for the river "
    "bank. The way was long, but Uma did not stop. When Uma came to the river bank, Zeke was "
    "waiting with a cake. \"I knew you would bring the silver key,\" said Zeke.",
    "Once there was a sleepy hare named Yara who lived near the bakery. It was a cold morning, "
    "and Yara was cross. Yara asked Hana thirteen were left. The two friends sat in the market "
    "until dark.",
    "Near the hill lived a brave hare, and the hare was called Finn. The stars were out, and "
    "Finn was afraid. Finn had four nuts. Nora gave Finn one more. \"How many do you have "
    "now?\" asked Nora. Finn counted slowly. \"I have five nuts,\" said Finn. The two friends "
    "sat in the windy field until dark.",
    "Once there was a quiet badger named Finn who lived near the river bank. Snow lay on the "
    "ground, and Finn was surprised. Finn wanted to paint a door. \"Shall it be green or "
    "red?\" asked Finn. \"I like red,\" said Zeke the owl. So Finn painted the door red. From "
    "then on everyone in the windy field knew the red door of Finn the badger.",
    "Near the stone bridge lived a shy owl, and the owl was called Kai. It was raining, and "
    "Kai was lonely. One day Kai lost a basket of plums. \"Where is my basket of plums?\" said "
    "Kai. Ivo the dog came by. \"Let us look in the harbour,\" said Ivo. They walked to the "
    "harbour. There, under a stone, was the basket of plums! \"Thank you, Ivo,\" said Kai. And "
    "Kai was calm again.",
    "Otis was a stubborn wren. Otis lived near the windy field. It was a cold morning, and "
    "Otis was sad. A letter came from Hana the crow. It said: \"Come to the bakery at 10:30, "
    "and bring a silver key.\" So Otis took the silver key and set out for the bakery. The way "
    "was long, but Otis did not stop. When Otis came to the bakery, Hana was waiting with a "
    "cake. \"I knew you would bring the silver key,\" said Hana.",
    "Near the library lived a merry owl, and the owl was called Ben. A thick fog had come, and "
    "Ben was afraid. Ben wanted to paint a door. \"Shall it be green or yellow?\" asked Ben. "
    "\"I like yellow,\" said Uma the wren. So Ben painted the door yellow. From then on "
    "everyone in the river bank knew the yellow door of Ben the owl. The end.",
    "Once there was a stubborn fox named Ivo who lived near the river bank. The evening was "
    "warm, and Ivo was calm. One day Ivo lost a brass bell. \"Where is my brass bell?\" said "
    "Ivo. Ben the bear came by. \"Let us look in the bakery,\" said Ben. They looked and "
    "looked, and at last Ben found the brass bell in the bakery. \"Thank you, Ben,\" said Ivo. "
    "And Ivo was happy again.",
    "Near the bakery lived a curious hen, and the hen was called Otis. The stars were out, and "
    "Otis was cross. One day Otis lost a basket of plums. \"Where is my basket of plums?\" "
    "said Otis. Nora the otter came by. \"Let us look in the harbour,\" said Nora. They walked "
    "to the harbour. There, under a stone, was the basket of plums! \"Thank you, Nora,\" said "
    "Otis. And Otis was happy again.",
    "Once there was a hungry otter named Jun who lived near the library. It was a cold "
    "morning, and Jun was afraid. Jun had nine plums. Ben gave Jun eight more. \"How many do "
    "you have now?\" asked Ben. Jun counted slowly. \"I have seventeen plums,\" said Jun. Then "
    "Jun ate thirteen of them, and four were left. The two friends sat in the river bank until "
    "dark.",
    "Near the forest lived a sleepy mole, and the mole was called Uma. Snow lay on the ground, "
    "and Uma was calm. Uma wanted to paint a door. \"Shall it be red or blue?\" asked Uma. \"I "
    "like blue,\" said Kai the crow. So Uma painted the door blue. From then on everyone in "
    "the windy field knew the blue door of Uma the mole.",
    "Hana was a stubborn crow. Hana lived near the stone bridge. The sun was high, and Hana "
    "was hopeful. Hana wanted to paint a door. \"Shall it be black or yellow?\" asked Hana. "
    "\"I like yellow,\" said Hana the hen. So Hana painted the door yellow. From then on "
    "everyone in the bakery knew the yellow door of Hana the crow.",
    "Near the stone bridge lived a curious crow, and the crow was called Ivo. It was a cold "
    "morning, and Ivo was tired. Ivo wanted to paint a door. \"Shall it be red or yellow?\" "
    "asked Ivo. \"I like yellow,\" said Yara the owl. So Ivo painted the door yellow. From "
    "then on everyone in the attic knew the yellow door of Ivo the crow.",
    "Once there was a stubborn goat named Wim who lived near the garden. The wind blew hard, "
    "and Wim was calm. One day Wim lost a warm loaf of bread. \"Where is my warm loaf of "
    "bread?\" said Wim. Hana the mouse came by. \"Let us look in the river bank,\" said Hana. "
    "They looked and looked, and at last Hana found the warm loaf of bread in the river bank. "
    "\"Thank you, Hana,\" said Wim. And Wim was calm again. And that is the tale of Wim the "
    "goat.",
    "Near the hill lived a merry pony, and the pony was called Hana. It was raining, and Hana "
    "was tired. Hana wanted to paint a door. \"Shall it be green or blue?\" asked Hana. \"I "
    "like blue,\" said Finn the otter. So Hana painted the door blue. From then on everyone in "
    "the forest knew the blue door of Hana the pony.",
    "Once there was a small fox named Rosa who lived near the hill. Snow lay on the ground, "
    "and Rosa was lonely. Rosa had nine shells. Ada gave Rosa one more. \"How many do you have "
    "now?\" asked Ada. Rosa counted slowly. \"I have ten shells,\" said Rosa. Then Rosa ate "
    "five of them, and five were left. The two friends sat in the stone bridge until dark. The "
    "end.",
    "Near the hill lived a hungry toad, and the toad was called Pia. It was a cold morning, "
    "and Pia was happy. A letter came from Finn the badger. It said: \"Come to the old mill at "
    "10:15, and bring a brass bell.\" So Pia took the brass bell and set out for the old mill. "
    "The way was long, but Pia did not stop. When Pia came to the old mill, Finn was waiting "
    "with a cake. \"I knew you would bring the brass bell,\" said Finn. And that is the tale "
    "of Pia the toad.",
    "Dev was a small mouse. Dev lived near the attic. The stars were out, and Dev was lonely. "
    "One day Dev lost a brass bell. \"Where is my brass bell?\" said Dev. Zeke the crow came "
    "by. \"Let us look in the market,\" said Zeke. They walked to the market. There, under a "
    "stone, was the brass bell! \"Thank you, Zeke,\" said Dev. And Dev was proud again.",
    "Near the stone bridge lived a sleepy badger, and the badger was called Yara. Snow lay on "
    "the ground, and Yara was cross. A letter came from Ivo the otter. It said: \"Come to the "
    "bakery at 3:00, and bring a torn map.\" So Yara took the torn map and set out for the "
    "bakery. The way was long, but Yara did not stop. When Yara came to the bakery, Ivo was "
    "waiting with a cake. \"I knew you would bring the torn map,\" said Ivo. That night they "
    "all slept well.",
};

const char *const *mgl_quantize_texts(size_t *count)
{
    *count = sizeof texts / sizeof *texts;
    return texts;
}
